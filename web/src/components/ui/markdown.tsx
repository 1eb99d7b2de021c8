import { type ComponentProps, type ReactNode, memo, useState } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import rehypeSanitize from 'rehype-sanitize'
import remarkGfm from 'remark-gfm'
import { htmlAsText } from '@/lib/html-as-text'
import { type Block, BlockSplitter, definitionsIn, hasFootnotes } from '@/lib/markdown-blocks'
import { isOwnEndpoint } from '@/lib/own-endpoint'
import { CodeBlock } from './code-block'
import { Diagram } from './diagram'
import styles from './markdown.module.css'

/** Longer blocks are not prose; parsing them again with every delta would block the page. */
const longest = 24_000

interface MarkdownProps {
  text: string
  isGrowing?: boolean
}

/** Text of a model or a person: parsed, sanitised, and rendered piece by piece so that only the last one is done again. */
export function Markdown({ text, isGrowing = false }: MarkdownProps): ReactNode {
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
  if (kind === 'code') return <CodeBlock code={text} language={language} isWhole={isWhole} />
  if (text.length > longest) return <p className={styles.plain}>{text}</p>
  return piece(definitions ? `${text}\n\n${definitions}` : text)
})

function piece(source: string): ReactNode {
  return (
    <ReactMarkdown remarkPlugins={[remarkGfm, htmlAsText]} rehypePlugins={[rehypeSanitize]} components={components}>
      {source}
    </ReactMarkdown>
  )
}

const components: Components = {
  a: ({ href, children }) => <Link href={href}>{children}</Link>,
  // Fetching a picture would tell its server who reads this, and when.
  img: ({ src, alt }) => <Link href={typeof src === 'string' ? src : undefined}>{alt || 'picture'}</Link>,
  // The box of a task list: nothing to press here, only something to read.
  input: ({ checked }) => (
    <span className={styles.box} role="img" aria-label={checked ? 'done' : 'to do'}>
      {checked ? '☑' : '☐'}
    </span>
  ),
  pre: ({ children }) => <>{children}</>,
  code: ({ className, children }) => {
    const text = String(children)
    const language = /language-(\S+)/.exec(className ?? '')?.[1]
    if (language === undefined && !text.includes('\n')) return <code className={styles.inline}>{children}</code>
    return <CodeBlock code={text.replace(/\n$/, '')} language={language ?? ''} />
  },
  table: ({ children }) => (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={styles.table} tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
}

function Link({ href, children }: Pick<ComponentProps<'a'>, 'href' | 'children'>): ReactNode {
  if (!href) return <>{children}</>
  if (href.startsWith('#')) return <a href={href}>{children}</a>
  if (isOwnEndpoint(href, location.href)) {
    return <span title={`${href}: links to this server’s API do not open from a message`}>{children}</span>
  }
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  )
}
