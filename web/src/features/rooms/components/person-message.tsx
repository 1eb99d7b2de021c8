import { type ReactNode, memo, useMemo, useState } from 'react'
import { Button } from '@/components/ui/button'
import { CodeBlock } from '@/components/ui/code-block'
import { CopyButton } from '@/components/ui/copy-button'
import { type Message, textOf } from '@/feed/state'
import { bytes } from '@/lib/format'
import { splitBlocks } from '@/lib/markdown-blocks'
import { Attachments } from './attachments'
import { Entry } from './entry'
import styles from './person-message.module.css'

/** The name under which someone speaks who never made an account. */
const localOwner = 'local'

export function personName(name: string): string {
  return name === localOwner ? 'You' : name
}

export const PersonMessage = memo(function PersonMessage({ roomId, message, isMarked }: { roomId: string; message: Message; isMarked: boolean }): ReactNode {
  const name = message.author.kind === 'person' ? personName(message.author.name) : ''
  const text = textOf(message)
  return (
    <Entry
      roomId={roomId}
      seq={message.seq}
      kind="person"
      who={<strong>{name}</strong>}
      time={message.createdAt}
      isMarked={isMarked}
      actions={<CopyButton text={() => text} label="Copy message" />}
    >
      {text !== '' && <PersonText text={text} />}
      <Attachments files={message.attachments} />
    </Entry>
  )
})

/** Longer messages are collapsed. */
const longest = 2400

/** As it was typed, line by line; only fenced code is set apart. */
export function PersonText({ text }: { text: string }): ReactNode {
  const [isOpen, setIsOpen] = useState(false)
  const isLong = text.length > longest
  return (
    <>
      <div className={isLong && !isOpen ? styles.folded : undefined}>
        <Blocks text={text} />
      </div>
      {isLong && (
        <Button size="small" look="quiet" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? 'Show less' : `Show all ${bytes(text.length)}`}
        </Button>
      )}
    </>
  )
}

function Blocks({ text }: { text: string }): ReactNode {
  const blocks = useMemo(() => (text.includes('```') ? splitBlocks(text) : null), [text])
  if (!blocks) return <p className={styles.text}>{text}</p>
  return (
    <div className={styles.blocks}>
      {blocks.map((block) =>
        block.kind === 'code' ? (
          <CodeBlock key={block.start} code={block.text} language={block.language} />
        ) : (
          <p key={block.start} className={styles.text}>
            {block.text.trimEnd()}
          </p>
        ),
      )}
    </div>
  )
}
