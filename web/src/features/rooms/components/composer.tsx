import { ArrowUp, Paperclip } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { IconButton } from '@/components/ui/button'
import { unfinished } from '@/feed/rows'
import { useFeed, useRoom } from '@/feed/use-feed'
import type { Room, WhenBusy } from '@/lib/api/types'
import { useCommands } from '@/lib/commands'
import { withAttached } from '../model/attached-text'
import { draftOf, keepDraft } from '../model/drafts'
import { mentionsIn } from '../model/mentions'
import { useAgents } from '../model/use-agents'
import { useAttachedTexts } from '../model/use-attached-texts'
import { AttachedChips } from './attached-chips'
import { BusyChoice } from './busy-choice'
import styles from './composer.module.css'
import { MentionField } from './mention-field'
import { StopButton } from './stop-button'

/** One can type and send before the room is read; what was sent goes when it is. */
export function Composer({ room, isLive }: { room: Room; isLive: boolean }): ReactNode {
  const feed = useFeed()
  const [text, setText] = useState(() => draftOf(room.id))
  const [chosenBusy, setChosenBusy] = useState<WhenBusy | null>(null)
  const [isDue, setIsDue] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  const { files, add, remove, clear } = useAttachedTexts()
  const everyone = useAgents()
  const seated = everyone.filter((agent) => room.agents.includes(agent.id))
  const isBusy = useRoom(room.id, (view) => view.state !== null && unfinished(view.state.runs).length > 0)
  const whenBusy = chosenBusy ?? (room.policy.when_busy === 'reject' ? 'enqueue' : room.policy.when_busy)
  const isSomething = text.trim() !== '' || files.length > 0

  useEffect(() => {
    const timer = setTimeout(() => keepDraft(room.id, text), 300)
    return () => clearTimeout(timer)
  }, [room.id, text])

  useEffect(() => {
    performance.mark('room-ready')
    // On a touch screen the keyboard would cover half of what one came to read.
    if (matchMedia('(pointer: fine)').matches) field.current?.focus()
  }, [])

  useCommands([{ id: 'focus-composer', title: 'Write a message', group: 'Room', keys: 'c', run: () => field.current?.focus() }])

  const send = (): void => {
    if (!isSomething) return
    setIsDue(!isLive)
    if (!isLive) return
    const whole = withAttached(text, files)
    void feed.outbox(room.id).send({ text: whole, mentions: mentionsIn(text, seated), whenBusy: isBusy ? whenBusy : null })
    setText('')
    keepDraft(room.id, '')
    clear()
    setChosenBusy(null)
  }

  useEffect(() => {
    if (isLive && isDue) send()
  })

  return (
    // Dropping is one way of three to attach; the button serves the keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form
      className={styles.composer}
      aria-label="Message"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        void add(event.dataTransfer.files)
      }}
    >
      <div className={styles.box}>
        <AttachedChips files={files} onRemove={remove} />
        <MentionField ref={field} text={text} agents={seated} onChange={setText} onSend={send} onFiles={(list) => void add(list)} />
        <div className={styles.tools}>
          <IconButton label="Attach a text file" onClick={() => picker.current?.click()}>
            <Paperclip size={17} aria-hidden />
          </IconButton>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label="Attach a text file"
            onChange={(event) => {
              if (event.target.files) void add(event.target.files)
              event.target.value = ''
            }}
          />
          {isBusy && <BusyChoice agents={seated} value={whenBusy} onChange={setChosenBusy} />}
          <div className={styles.end}>
            <StopButton roomId={room.id} isBusy={isBusy} />
            <button type="submit" className={styles.send} disabled={!isSomething || isDue} aria-label="Send" title="Send (Enter)">
              <ArrowUp size={18} aria-hidden />
            </button>
          </div>
        </div>
      </div>
    </form>
  )
}
