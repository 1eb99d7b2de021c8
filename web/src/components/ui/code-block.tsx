import { ChevronDown, ChevronRight, FileDown, WrapText } from 'lucide-react'
import { type ReactNode, memo, useEffect, useState } from 'react'
import { classNames } from '@/lib/class-names'
import { download, extensionOf } from '@/lib/download'
import { type Token, highlight } from '@/lib/highlight'
import { IconButton } from './button'
import styles from './code-block.module.css'
import { CopyButton } from './copy-button'
import { VisibleText } from './visible-text'
import { t } from '../texts'

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
  const [isWrapped, setIsWrapped] = useState(false)
  const [isOpen, setIsOpen] = useState(true)
  return (
    <div className={styles.block}>
      <div className={styles.bar}>
        <span>{language || t.text}</span>
        <div className={styles.tools}>
          <IconButton label={isOpen ? t.collapseCode : t.expandCode} aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            {isOpen ? <ChevronDown size={15} aria-hidden /> : <ChevronRight size={15} aria-hidden />}
          </IconButton>
          {!showsHidden && (
            <IconButton label={t.wrapLines} aria-pressed={isWrapped} onClick={() => setIsWrapped(!isWrapped)}>
              <WrapText size={15} aria-hidden />
            </IconButton>
          )}
          <IconButton label={t.downloadCode} onClick={() => download(`code.${extensionOf(language)}`, 'text/plain', code)}>
            <FileDown size={15} aria-hidden />
          </IconButton>
          <CopyButton text={() => code} label={t.copyCode} />
        </div>
      </div>
      {/* A long line scrolls inside; the keyboard needs a way in to do that. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre hidden={!isOpen} className={classNames(styles.code, (showsHidden || isWrapped) && styles.wrapped)} tabIndex={0} role="group" aria-label={t.code(language || t.plainText)}>
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
