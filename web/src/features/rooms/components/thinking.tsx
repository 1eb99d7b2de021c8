import { ChevronRight } from 'lucide-react'
import { type ReactNode, memo } from 'react'
import { count } from '@/lib/format'
import styles from './thinking.module.css'

export const Thinking = memo(function Thinking({ text, isLive }: { text: string; isLive: boolean }): ReactNode {
  const words = text.trim() === '' ? 0 : text.trim().split(/\s+/).length
  return (
    <details className={styles.thinking}>
      <summary>
        <ChevronRight size={14} aria-hidden className={styles.arrow} />
        {isLive ? 'Thinking' : 'Thought'}
        <span className={styles.detail}>
          {count(words)} {words === 1 ? 'word' : 'words'}
        </span>
      </summary>
      <p>{text}</p>
    </details>
  )
})
