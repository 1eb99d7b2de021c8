import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { fullTime, shortTime } from '@/lib/format'
import type { AuditEntry } from '@/lib/api/types'
import { type AuditNames, circumstancesOf, sentenceOf } from '../model/audit-sentence'
import { t } from '../texts'
import styles from './security-log.module.css'

export function SecurityLogEntry({ entry, names }: { entry: AuditEntry; names: AuditNames }): ReactNode {
  return (
    <li className={styles.entry} data-action={entry.action}>
      <time dateTime={entry.created_at} title={fullTime(entry.created_at)}>
        {shortTime(entry.created_at)}
      </time>
      <div>
        <p dir="auto">{sentenceOf(entry, names)}</p>
        <p className={styles.how}>
          {circumstancesOf(entry, names)}
          {entry.user_id && (
            <>
              {' · '}
              <Link to="/settings/security-log" search={{ user: entry.user_id }}>
                {t.onlyThisUser}
              </Link>
            </>
          )}
        </p>
      </div>
    </li>
  )
}
