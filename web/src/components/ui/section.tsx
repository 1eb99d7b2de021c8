import { type ReactNode, useId } from 'react'
import styles from './section.module.css'

interface SectionProps {
  title: string
  lead?: ReactNode
  action?: ReactNode
  /** The action stays beside a short lead, however little room there is. */
  isCompact?: boolean
  children?: ReactNode
}

export function Section({ title, lead, action, isCompact, children }: SectionProps): ReactNode {
  const id = useId()
  return (
    <section className={styles.section} aria-labelledby={id}>
      <div className={isCompact ? styles.compactHead : styles.head}>
        <div>
          <h2 id={id}>{title}</h2>
          {lead && <p className={styles.lead}>{lead}</p>}
        </div>
        {action}
      </div>
      {children}
    </section>
  )
}
