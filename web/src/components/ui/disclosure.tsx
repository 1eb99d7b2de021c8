import { ChevronRight } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import styles from './disclosure.module.css'

interface DisclosureProps {
  title: string
  /** What is in it, for those who leave it closed. */
  summary: string
  /** Open from the start; after that as the person left it, unless there is something to see to. */
  isOpen: boolean
  children: ReactNode
}

/** A section that can be closed. */
export function Disclosure({ title, summary, isOpen, children }: DisclosureProps): ReactNode {
  const [choice, setChoice] = useState<boolean | null>(null)
  const [wanted, setWanted] = useState(isOpen)
  if (isOpen !== wanted) {
    setWanted(isOpen)
    if (isOpen) setChoice(true)
  }
  const isShown = choice ?? isOpen
  return (
    <section className={styles.section}>
      <h2>
        <button type="button" className={styles.head} aria-expanded={isShown} onClick={() => setChoice(!isShown)}>
          <ChevronRight size={15} aria-hidden className={styles.arrow} />
          {title}
          <span className={styles.summary}>{summary}</span>
        </button>
      </h2>
      {isShown && <div className={styles.body}>{children}</div>}
    </section>
  )
}
