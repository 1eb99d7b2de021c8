import type { ReactNode } from 'react'
import { splitHidden } from '@/lib/hidden-characters'
import styles from './visible-text.module.css'

/** Text that somebody decides about: hidden characters are shown as badges and have no effect on what is around them. */
export function VisibleText({ text }: { text: string }): ReactNode {
  return splitHidden(text).map((piece, index) =>
    piece.kind === 'text' ? (
      piece.text
    ) : (
      <span key={index} className={styles.hidden} title={piece.name}>
        ⟨{piece.codePoint}⟩
      </span>
    ),
  )
}
