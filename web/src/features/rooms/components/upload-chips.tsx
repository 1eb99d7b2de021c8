import { FileText, RotateCcw, X } from 'lucide-react'
import type { ReactNode } from 'react'
import { bytes } from '@/lib/format'
import type { Upload } from '../model/uploads'
import { t } from '../texts'
import styles from './upload-chips.module.css'

interface UploadChipsProps {
  uploads: readonly Upload[]
  onRetry: (key: number) => void
  onRemove: (key: number) => void
}

export function UploadChips({ uploads, onRetry, onRemove }: UploadChipsProps): ReactNode {
  if (uploads.length === 0) return null
  return (
    <ul className={styles.list} aria-label={t.attachedFiles}>
      {uploads.map((upload) => (
        <li key={upload.key} className={styles.chip} data-failed={upload.problem !== null || undefined}>
          {upload.preview ? <img src={upload.preview} alt="" className={styles.preview} /> : <FileText size={15} aria-hidden />}
          <span className={styles.text}>
            <span className={styles.name}>{upload.name}</span>
            <State upload={upload} />
          </span>
          {upload.problem !== null && (
            <button type="button" aria-label={t.retry(upload.name)} title={t.tryAgain} onClick={() => onRetry(upload.key)}>
              <RotateCcw size={14} aria-hidden />
            </button>
          )}
          <button type="button" aria-label={t.remove(upload.name)} title={t.removeTitle} onClick={() => onRemove(upload.key)}>
            <X size={14} aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  )
}

function State({ upload }: { upload: Upload }): ReactNode {
  if (upload.problem !== null) {
    return (
      <span className={styles.problem} role="alert">
        {upload.problem}
      </span>
    )
  }
  if (upload.attachment) return <span className={styles.size}>{bytes(upload.size)}</span>
  return <progress className={styles.progress} aria-label={t.sending(upload.name)} max={1} value={upload.share} />
}
