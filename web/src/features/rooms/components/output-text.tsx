import { type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { CopyButton } from '@/components/ui/copy-button'
import { bytes } from '@/lib/format'
import { t } from '../texts'
import styles from './output-text.module.css'

/** More than this at once would hold up the page; the end is what matters first. */
const mostShown = 20_000
const moreShown = 200_000

interface OutputTextProps {
  label: string
  text: string
  isError?: boolean
  isGrowing?: boolean
}

export function OutputText({ label, text, isError = false, isGrowing = false }: OutputTextProps): ReactNode {
  const [length, setLength] = useState(mostShown)
  const box = useRef<HTMLPreElement>(null)
  const isCut = text.length > length
  const shown = isCut ? text.slice(-length) : text

  useLayoutEffect(() => {
    if (isGrowing && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [isGrowing, shown])

  return (
    <div className={styles.output} data-error={isError || undefined}>
      <div className={styles.bar}>
        <span>{label}</span>
        {isCut && (
          <Button size="small" look="quiet" onClick={() => setLength(length + moreShown)}>
            {text.length > length + moreShown ? t.showMoreOf(bytes(moreShown), bytes(text.length)) : t.showAll(bytes(text.length))}
          </Button>
        )}
        <CopyButton text={() => text} label={t.copy(label.toLowerCase())} className={styles.copy} />
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre ref={box} tabIndex={0} role="group" aria-label={label}>
        {shown}
      </pre>
    </div>
  )
}
