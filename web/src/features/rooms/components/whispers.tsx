import type { ReactNode } from 'react'
import { Markdown } from '@/components/ui/markdown'
import { t } from '../texts'
import styles from './whispers.module.css'

/** What an agent told people, and no other agent. */
export function Whispers({ texts }: { texts: readonly string[] }): ReactNode {
  if (texts.length === 0) return null
  return (
    <ul className={styles.whispers} aria-label={t.whispers}>
      {texts.map((text, index) => (
        // Whispers are only ever added.
        // oxlint-disable-next-line react/no-array-index-key
        <li key={index}>
          <span className={styles.badge}>{t.whisperOnlyPeopleReadThis}</span>
          <Markdown text={text} isGrowing={false} />
        </li>
      ))}
    </ul>
  )
}
