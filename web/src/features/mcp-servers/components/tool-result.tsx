import type { ReactNode } from 'react'
import type { McpCallResult, McpContent } from '@/lib/api/types'
import { duration } from '@/lib/format'
import { t } from '../texts'
import styles from './mcp-server-page.module.css'

/** Pictures that a browser shows without running anything. */
const safePictures = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** What a tool answered. It is somebody else's text: shown as it is, never as anything more. */
export function ToolResult({ result }: { result: McpCallResult }): ReactNode {
  return (
    <section className={styles.result} aria-label={t.result}>
      <p className={result.is_error ? styles.problem : styles.note} role="status">
        {result.is_error ? t.failedAfter : t.finishedIn} {duration(result.millis)}
      </p>
      {result.notices.map((notice) => (
        <p key={notice} className={styles.note}>
          {notice}
        </p>
      ))}
      {result.content.map((content, index) => (
        <Piece key={index} content={content} label={t.answer(index + 1)} />
      ))}
      {result.structured !== null && result.structured !== undefined && <Text label={t.structuredAnswer} text={JSON.stringify(result.structured, null, 2)} />}
    </section>
  )
}

function Piece({ content, label }: { content: McpContent; label: string }): ReactNode {
  switch (content.type) {
    case 'text':
      return <Text label={label} text={content.text} />
    case 'image':
      if (!safePictures.includes(content.media_type)) return <Text label={label} text={t.imageTypeIsNotShown(content.media_type)} />
      return <img src={`data:${content.media_type};base64,${content.data}`} alt={t.fromTheTool} />
    case 'audio':
      return <Text label={label} text={t.soundOfTheTypeWhichIsNot(content.media_type)} />
    case 'resource':
      return <Text label={label} text={content.text ?? `${content.uri}: ${content.media_type ?? 'bytes'}`} />
    case 'resource_link':
      return <Text label={label} text={[content.name, content.uri, content.description].filter(Boolean).join(' · ')} />
    default:
      return <Text label={label} text={JSON.stringify(content, null, 2)} />
  }
}

function Text({ label, text }: { label: string; text: string }): ReactNode {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard must reach it
    <pre className={styles.output} role="region" aria-label={label} tabIndex={0}>
      {text}
    </pre>
  )
}
