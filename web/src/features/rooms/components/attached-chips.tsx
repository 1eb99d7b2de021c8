import { FileText, X } from 'lucide-react'
import type { ReactNode } from 'react'
import { bytes } from '@/lib/format'
import type { AttachedText } from '../model/attached-text'
import styles from './attached-chips.module.css'

export function AttachedChips({ files, onRemove }: { files: readonly AttachedText[]; onRemove: (index: number) => void }): ReactNode {
  if (files.length === 0) return null
  return (
    <ul className={styles.list} aria-label="Attached texts">
      {files.map((file, index) => (
        <li key={`${index} ${file.name}`} className={styles.chip}>
          <FileText size={13} aria-hidden />
          <span className={styles.name}>{file.name}</span>
          <span className={styles.size}>{bytes(file.text.length)}</span>
          <button type="button" aria-label={`Remove ${file.name}`} onClick={() => onRemove(index)}>
            <X size={14} aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  )
}
