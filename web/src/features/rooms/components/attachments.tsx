import { Paperclip } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Attachment } from '@/lib/api/types'
import { isOwnEndpoint, isUpload } from '@/lib/own-endpoint'
import { t } from '../texts'
import styles from './attachments.module.css'

export function Attachments({ files }: { files: readonly Attachment[] }): ReactNode {
  if (files.length === 0) return null
  return (
    <ul className={styles.list} aria-label={t.attachments}>
      {files.map((file) => (
        <li key={file.url}>{isPicture(file) ? <Thumbnail file={file} /> : <Chip file={file} />}</li>
      ))}
    </ul>
  )
}

function Thumbnail({ file }: { file: Attachment }): ReactNode {
  return (
    <a href={file.url} target="_blank" rel="noopener noreferrer nofollow" className={styles.thumbnail} title={file.name}>
      <img src={file.url} alt={file.name} />
    </a>
  )
}

function Chip({ file }: { file: Attachment }): ReactNode {
  return (
    <span className={styles.chip}>
      <Paperclip size={13} aria-hidden />
      {isSafe(file.url) ? (
        <a href={file.url} target="_blank" rel="noopener noreferrer nofollow">
          {file.name}
        </a>
      ) : (
        <span title={file.url}>{file.name}</span>
      )}
      <span className={styles.type}>{file.media_type}</span>
    </span>
  )
}

/** Only what lies on this server is fetched unasked: anywhere else would learn who reads this, and when. */
function isPicture({ url, media_type }: Attachment): boolean {
  return isUpload(url) && /^image\/(png|jpeg|gif|webp)$/.test(media_type)
}

/** The URL comes from the author of the message: only uploads, and http(s) addresses outside of our API, become links. */
function isSafe(address: string): boolean {
  if (isUpload(address)) return true
  if (isOwnEndpoint(address, location.href)) return false
  try {
    const { protocol } = new URL(address, location.href)
    return protocol === 'https:' || protocol === 'http:'
  } catch {
    return false
  }
}
