import { Paperclip } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Attachment } from '@/lib/api/types'
import styles from './attachments.module.css'

export function Attachments({ files }: { files: readonly Attachment[] }): ReactNode {
  if (files.length === 0) return null
  return (
    <ul className={styles.list}>
      {files.map((file) => (
        <li key={file.url} className={styles.chip}>
          <Paperclip size={13} aria-hidden />
          {isSafe(file.url) ? (
            <a href={file.url} target="_blank" rel="noopener noreferrer nofollow">
              {file.name}
            </a>
          ) : (
            <span title={file.url}>{file.name}</span>
          )}
          <span className={styles.type}>{file.media_type}</span>
        </li>
      ))}
    </ul>
  )
}

/** Where the bytes are is said by whoever posted: only plain web addresses become links. */
function isSafe(address: string): boolean {
  try {
    const { protocol } = new URL(address, location.href)
    return protocol === 'https:' || protocol === 'http:'
  } catch {
    return false
  }
}
