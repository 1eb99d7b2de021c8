import { ChevronRight } from 'lucide-react'
import { type ReactNode, memo } from 'react'
import { count } from '@/lib/format'
import { t } from '../texts'
import styles from './thinking.module.css'

export const Thinking = memo(function Thinking({ text, isLive }: { text: string; isLive: boolean }): ReactNode {
  // With every delta, so long texts are only estimated.
  const words = text.length > 20_000 ? Math.round(text.length / 6) : (text.match(/\S+/g)?.length ?? 0)
  return (
    <details className={styles.thinking}>
      <summary>
        <ChevronRight size={14} aria-hidden className={styles.arrow} />
        {isLive ? t.thinking : t.thought}
        <span className={styles.detail}>
          {count(words)} {words === 1 ? t.word : t.words}
        </span>
      </summary>
      <p dir="auto">{text}</p>
    </details>
  )
})
