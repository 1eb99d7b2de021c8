import { type ComponentProps, type ReactNode, memo, useState } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import rehypeSanitize from 'rehype-sanitize'
import remarkGfm from 'remark-gfm'
import { htmlAsText } from '@/lib/html-as-text'
import { type Block, BlockSplitter, definitionsIn, hasFootnotes } from '@/lib/markdown-blocks'
import { formulaIn, markFormulas } from '@/lib/math-spans'
import { isOwnEndpoint, isUpload } from '@/lib/own-endpoint'
import { CodeBlock } from './code-block'
import { Diagram } from './diagram'
import { FoldedText } from './folded-text'
import { FormulaView } from './formula-view'
import { t } from '../texts'
import styles from './markdown.module.css'

/** Longer blocks are not prose; parsing them again with every delta would block the page. */
const longest = 24_000

interface MarkdownProps {
  text: string
  isGrowing?: boolean
}

/** Longer texts are folded: their start is rendered, the rest on demand. */
const foldedFrom = 80_000
const shownOfFolded = 20_000

/** Text of a model or a person: parsed, sanitised, and rendered piece by piece so that only the last one is done again. */
export function Markdown({ text, isGrowing = false }: MarkdownProps): ReactNode {
  if (text.length <= foldedFrom) return <Prose text={text} isGrowing={isGrowing} />
  const end = text.lastIndexOf('\n', shownOfFolded)
  const from = end > shownOfFolded / 2 ? end : shownOfFolded
  return (
    <>
      <Prose text={text.slice(0, from)} isGrowing={false} />
      <FoldedText text={text} from={from} />
    </>
  )
}

function Prose({ text, isGrowing = false }: MarkdownProps): ReactNode {
  const [splitter] = useState(() => new BlockSplitter())
  if (hasFootnotes(text) && text.length <= longest) return <div className={styles.prose}>{piece(text)}</div>
  const blocks = splitter.update(text)
  const definitions = definitionsIn(text)
  return (
    <div className={styles.prose}>
      {blocks.map((block, index) => (
        <Piece
          key={block.start}
          kind={block.kind}
          text={block.text}
          language={block.language}
          isWhole={block.isClosed || !isGrowing || index < blocks.length - 1}
          definitions={block.text.includes('[') ? definitions : ''}
        />
      ))}
    </div>
  )
}

type PieceProps = Pick<Block, 'kind' | 'text' | 'language'> & { isWhole: boolean; definitions: string }

const Piece = memo(function Piece({ kind, text, language, isWhole, definitions }: PieceProps): ReactNode {
  if (kind === 'code' && language.toLowerCase() === 'mermaid') return <Diagram source={text} isWhole={isWhole} />
  if (kind === 'code' && language.toLowerCase() === 'math' && isWhole) return <FormulaView tex={text} isDisplay />
  if (kind === 'code') return <CodeBlock code={text} language={language} isWhole={isWhole} />
  if (text.length > longest) return <p className={styles.plain} dir="auto">{text}</p>
  return piece(definitions ? `${text}\n\n${definitions}` : text)
})

function piece(source: string): ReactNode {
  return (
    <ReactMarkdown remarkPlugins={[remarkGfm, htmlAsText]} rehypePlugins={[rehypeSanitize]} components={components}>
      {markFormulas(source)}
    </ReactMarkdown>
  )
}

/** Each paragraph has the direction of its own first letter: one answer may mix languages. */
const components: Components = {
  p: ({ children }) => <p dir="auto">{children}</p>,
  li: ({ children }) => <li dir="auto">{children}</li>,
  h1: ({ children }) => <h1 dir="auto">{children}</h1>,
  h2: ({ children }) => <h2 dir="auto">{children}</h2>,
  h3: ({ children }) => <h3 dir="auto">{children}</h3>,
  h4: ({ children }) => <h4 dir="auto">{children}</h4>,
  th: ({ children, style }) => <th dir="auto" style={style}>{children}</th>,
  td: ({ children, style }) => <td dir="auto" style={style} data-number={style?.textAlign === 'right' || undefined}>{children}</td>,
  a: ({ href, children }) => <Link href={href}>{children}</Link>,
  // Fetching a picture would tell its server who reads this, and when.
  img: ({ src, alt }) => <Picture src={typeof src === 'string' ? src : undefined} alt={alt || t.image} />,
  // The box of a task list: nothing to press here, only something to read.
  input: ({ checked }) => (
    <span className={styles.box} role="img" aria-label={checked ? t.done : t.toDo}>
      {checked ? '☑' : '☐'}
    </span>
  ),
  pre: ({ children }) => <>{children}</>,
  code: ({ className, children }) => {
    const text = String(children)
    const formula = formulaIn(text)
    if (formula) return <FormulaView {...formula} />
    const language = /language-(\S+)/.exec(className ?? '')?.[1]
    if (language === undefined && !text.includes('\n')) return <code className={styles.inline}>{children}</code>
    return <CodeBlock code={text.replace(/\n$/, '')} language={language ?? ''} />
  },
  table: ({ children }) => (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={styles.table} tabIndex={0} role="group" aria-label={t.table}>
      <table>{children}</table>
    </div>
  ),
}

/** Uploads of this server are shown. Any other address is a link, because the policy of the page loads nothing from elsewhere. */
function Picture({ src, alt }: { src: string | undefined; alt: string }): ReactNode {
  if (src !== undefined && isUpload(src)) return <img src={src} alt={alt} className={styles.picture} />
  return <Link href={src}>{alt}</Link>
}

function Link({ href, children }: Pick<ComponentProps<'a'>, 'href' | 'children'>): ReactNode {
  if (!href) return <>{children}</>
  if (href.startsWith('#')) return <a href={href}>{children}</a>
  if (isOwnEndpoint(href, location.href)) {
    return <span title={t.linksToThisServersApiDoNot(href)}>{children}</span>
  }
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  )
}
