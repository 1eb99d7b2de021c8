import { FileDown } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { download } from '@/lib/download'
import { bytes } from '@/lib/format'
import { Button } from './button'
import { t } from '../texts'
import styles from './folded-text.module.css'

/** The end of a folded text that stays in sight. */
const tailLength = 4000
/** How much more is shown at once, in pieces that are laid out only when they are in sight. */
const step = 200_000
const pieceLength = 20_000

interface FoldedTextProps {
  text: string
  /** How much of the text is shown above. */
  from: number
}

/** The rest of a very long text: its end, and as much of the middle as was asked for. All of it at once would stop the page. */
export function FoldedText({ text, from }: FoldedTextProps): ReactNode {
  const [shown, setShown] = useState(from)
  const tail = Math.max(shown, text.length - tailLength)
  return (
    <>
      {pieces(text, from, shown).map(([start, piece]) => (
        <p key={start} className={styles.piece} dir="auto">
          {piece}
        </p>
      ))}
      {tail > shown && (
        <div className={styles.bar}>
          <span>{t.notShown(bytes(tail - shown))}</span>
          <Button size="small" onClick={() => setShown(Math.min(shown + step, text.length))}>
            {t.showMore}
          </Button>
          <Button size="small" look="quiet" onClick={() => download('text.txt', 'text/plain', text)}>
            <FileDown size={14} aria-hidden />
            {t.downloadAll} {bytes(text.length)}
          </Button>
        </div>
      )}
      <p className={styles.tail} dir="auto">
        {text.slice(tail)}
      </p>
    </>
  )
}

function pieces(text: string, from: number, to: number): [start: number, piece: string][] {
  const found: [number, string][] = []
  for (let start = from; start < to; start += pieceLength) found.push([start, text.slice(start, Math.min(start + pieceLength, to))])
  return found
}
