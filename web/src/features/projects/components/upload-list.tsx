import { RotateCcw, X } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import { bytes, percent } from '@/lib/format'
import type { FileUpload } from '../model/upload-queue'
import { t } from '../texts'
import styles from './files-tab.module.css'

interface UploadListProps {
  uploads: readonly FileUpload[]
  onRetry: (key: number) => void
  onRemove: (key: number) => void
}

/** What is on its way, each with a bar; what failed, with the reason. */
export function UploadList({ uploads, onRetry, onRemove }: UploadListProps): ReactNode {
  if (uploads.length === 0) return null
  return (
    <ul className={styles.uploads} aria-label={t.uploads}>
      {uploads.map(({ key, path, size, share, state, problem }) => (
        <li key={key} data-failed={state === 'failed' || undefined}>
          <span className={styles.uploadName} dir="auto">{path}</span>
          {state === 'failed' ? (
            <span className={styles.uploadProblem} role="alert">{problem}</span>
          ) : (
            <>
              <progress aria-label={t.uploading(path)} max={1} value={share} />
              <span className={styles.share}>{state === 'waiting' ? t.waiting : t.shareOf(percent(share), bytes(size))}</span>
            </>
          )}
          {state === 'failed' && (
            <IconButton label={t.retryUpload(path)} onClick={() => onRetry(key)}>
              <RotateCcw size={14} aria-hidden />
            </IconButton>
          )}
          <IconButton label={t.cancelUpload(path)} onClick={() => onRemove(key)}>
            <X size={14} aria-hidden />
          </IconButton>
        </li>
      ))}
    </ul>
  )
}
