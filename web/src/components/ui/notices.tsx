import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { dismiss, noticeStore } from '@/lib/notices'
import { useStore } from '@/lib/store'
import { IconButton } from './button'
import { t } from '../texts'
import styles from './notices.module.css'

/** Short notices about results and errors that have no better place in the page. */
export function Notices(): ReactNode {
  const notices = useStore(noticeStore)
  return (
    <div className={styles.stack} role="status" aria-live="polite">
      {notices.map((notice) => (
        <div key={notice.id} className={styles.notice} data-kind={notice.kind}>
          <span>{notice.text}</span>
          <IconButton label={t.dismiss} onClick={() => dismiss(notice.id)}>
            <X size={15} aria-hidden />
          </IconButton>
        </div>
      ))}
    </div>
  )
}
