import { Pencil, Quote } from 'lucide-react'
import { type ReactNode, memo, useMemo, useState } from 'react'
import { Button, IconButton } from '@/components/ui/button'
import { CodeBlock } from '@/components/ui/code-block'
import { CopyButton } from '@/components/ui/copy-button'
import { FoldedText } from '@/components/ui/folded-text'
import { textOf } from '@/feed/message-text'
import type { Message } from '@/feed/state'
import { useRoom } from '@/feed/use-feed'
import { bytes } from '@/lib/format'
import { splitBlocks } from '@/lib/markdown-blocks'
import { personName } from '@/lib/person-name'
import { putInComposer, quoted } from '../model/composer-insert'
import { steeredIn } from '../model/steered'
import { Attachments } from './attachments'
import { BranchButton } from './branch-button'
import { Entry } from './entry'
import { t } from '../texts'
import styles from './person-message.module.css'

export const PersonMessage = memo(function PersonMessage({ roomId, message, isMarked }: { roomId: string; message: Message; isMarked: boolean }): ReactNode {
  const name = message.author.kind === 'person' ? personName(message.author.name) : ''
  const text = textOf(message)
  const isSteered = useRoom(roomId, (view) => view.state !== null && steeredIn(view.state.runs).has(message.id))
  return (
    <Entry
      roomId={roomId}
      seq={message.seq}
      kind="person"
      who={<strong dir="auto">{name}</strong>}
      time={message.createdAt}
      isMarked={isMarked}
      actions={
        <>
          <IconButton label={t.editAndResend} onClick={() => putInComposer(roomId, text)}>
            <Pencil size={15} aria-hidden />
          </IconButton>
          <IconButton label={t.quote} onClick={() => putInComposer(roomId, quoted(text))}>
            <Quote size={15} aria-hidden />
          </IconButton>
          <CopyButton text={() => text} label={t.copyMessage} />
          <BranchButton roomId={roomId} messageId={message.id} />
        </>
      }
    >
      {text !== '' && <PersonText text={text} />}
      <Attachments files={message.attachments} />
      {isSteered && <p className={styles.steered}>{t.addedToTheAnswerWhileItRan}</p>}
    </Entry>
  )
})

/** Longer messages are collapsed. */
const longest = 2400
/** More than this at once would stop the page. */
const mostShown = 60_000

/** As it was typed, line by line; only fenced code is set apart. */
export function PersonText({ text }: { text: string }): ReactNode {
  const [isOpen, setIsOpen] = useState(false)
  const isLong = text.length > longest
  return (
    <>
      <div className={isLong && !isOpen ? styles.folded : undefined}>
        <Blocks text={isLong && !isOpen ? text.slice(0, longest) : text.slice(0, mostShown)} />
        {isOpen && text.length > mostShown && <FoldedText text={text} from={mostShown} />}
      </div>
      {isLong && (
        <Button size="small" look="quiet" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? t.showLess : t.showAll(bytes(text.length))}
        </Button>
      )}
    </>
  )
}

function Blocks({ text }: { text: string }): ReactNode {
  const blocks = useMemo(() => (text.includes('```') ? splitBlocks(text) : null), [text])
  if (!blocks) return <p className={styles.text} dir="auto">{text}</p>
  return (
    <div className={styles.blocks}>
      {blocks.map((block) =>
        block.kind === 'code' ? (
          <CodeBlock key={block.start} code={block.text} language={block.language} />
        ) : (
          <p key={block.start} className={styles.text} dir="auto">
            {block.text.trimEnd()}
          </p>
        ),
      )}
    </div>
  )
}
