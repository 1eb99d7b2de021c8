import { type ReactNode, memo, useEffect, useState } from 'react'
import { classNames } from '@/lib/class-names'
import { type Token, highlight } from '@/lib/highlight'
import styles from './code-block.module.css'
import { CopyButton } from './copy-button'
import { VisibleText } from './visible-text'

/** Colouring more than this would hold up the page. */
const mostColoured = 60_000

interface CodeBlockProps {
  code: string
  language: string
  /** Code that still grows is shown plain; it is coloured once, when it is whole. */
  isWhole?: boolean
  /** Nothing stays out of sight: invisible and bidirectional characters are badges, long lines wrap. What is copied stays as it is. */
  showsHidden?: boolean
}

export const CodeBlock = memo(function CodeBlock({ code, language, isWhole = true, showsHidden = false }: CodeBlockProps): ReactNode {
  const lines = useHighlighted(code, language, isWhole)
  return (
    <div className={styles.block}>
      <div className={styles.bar}>
        <span>{language || 'text'}</span>
        <CopyButton text={() => code} label="Copy code" className={styles.copy} />
      </div>
      {/* A long line scrolls inside; the keyboard needs a way in to do that. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className={classNames(styles.code, showsHidden && styles.wrapped)} tabIndex={0} role="region" aria-label={`Code, ${language || 'plain text'}`}>
        <code>{lines ? lines.map((line, index) => <Line key={index} tokens={line} showsHidden={showsHidden} />) : showsHidden ? <VisibleText text={code} /> : code}</code>
      </pre>
    </div>
  )
})

function Line({ tokens, showsHidden }: { tokens: Token[]; showsHidden: boolean }): ReactNode {
  return (
    <>
      {tokens.map((token, index) => (
        <span key={index} style={{ color: token.color }}>
          {showsHidden ? <VisibleText text={token.text} /> : token.text}
        </span>
      ))}
      {'\n'}
    </>
  )
}

function useHighlighted(code: string, language: string, isWhole: boolean): Token[][] | null {
  const [done, setDone] = useState<{ code: string; lines: Token[][] | null } | null>(null)
  const isWanted = isWhole && language !== '' && code.length <= mostColoured

  useEffect(() => {
    if (!isWanted) return
    let isCurrent = true
    void highlight(code, language).then((lines) => isCurrent && setDone({ code, lines }))
    return () => {
      isCurrent = false
    }
  }, [code, language, isWanted])

  return isWanted && done?.code === code ? done.lines : null
}
