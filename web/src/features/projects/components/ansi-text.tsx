import { type CSSProperties, type ReactNode, useMemo } from 'react'
import { type AnsiPiece, parseAnsi } from '../model/ansi'
import styles from './ansi-text.module.css'

/** The output of a program in its colors. */
export function AnsiText({ text }: { text: string }): ReactNode {
  const pieces = useMemo(() => parseAnsi(text), [text])
  return pieces.map((piece, index) =>
    isPlain(piece) ? (
      piece.text
    ) : (
      // Pieces have no other name than their place.
      // oxlint-disable-next-line react/no-array-index-key
      <span key={index} className={styles.piece} data-bold={piece.isBold || undefined} data-dim={piece.isDim || undefined} data-italic={piece.isItalic || undefined} data-underlined={piece.isUnderlined || undefined} style={styleOf(piece)}>
        {piece.text}
      </span>
    ),
  )
}

function isPlain(piece: AnsiPiece): boolean {
  return piece.color === null && piece.background === null && !piece.isBold && !piece.isDim && !piece.isItalic && !piece.isUnderlined
}

function styleOf({ color, background }: AnsiPiece): CSSProperties {
  const named = (value: AnsiPiece['color']): string | undefined => (typeof value === 'number' ? `var(--ansi-${value})` : (value ?? undefined))
  return { color: named(color), backgroundColor: named(background) }
}
