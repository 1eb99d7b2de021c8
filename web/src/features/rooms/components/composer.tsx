import { useQuery } from '@tanstack/react-query'
import { ArrowUp, Paperclip } from 'lucide-react'
import { type DragEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { IconButton } from '@/components/ui/button'
import { unfinished } from '@/feed/rows'
import { useFeed, useRoom } from '@/feed/use-feed'
import { skillsQuery } from '@/lib/api/queries'
import type { Room, WhenBusy } from '@/lib/api/types'
import { useCommands } from '@/lib/commands'
import { useStore } from '@/lib/store'
import { mentionsIn } from '../model/mentions'
import type { Skill } from '../model/skill'
import { commandFor } from '../model/skill-command'
import { uploadsIn } from '../model/upload-list'
import { readinessOf } from '../model/uploads'
import { useAgents } from '../model/use-agents'
import { useDraft } from '../model/use-draft'
import { BudgetNote } from './budget-note'
import { BusyChoice } from './busy-choice'
import styles from './composer.module.css'
import { MessageField } from './message-field'
import { SkillForm } from './skill-form'
import { StopButton } from './stop-button'
import { UploadChips } from './upload-chips'

/** One can type and send before the room is read and the files are there; what was sent goes when they are. */
export function Composer({ room, isLive }: { room: Room; isLive: boolean }): ReactNode {
  const feed = useFeed()
  const [text, setText] = useDraft(room.id)
  const [chosenBusy, setChosenBusy] = useState<WhenBusy | null>(null)
  const [isDue, setIsDue] = useState(false)
  const [isOver, setIsOver] = useState(false)
  const [skill, setSkill] = useState<Skill | null>(null)
  const field = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  const list = uploadsIn(room.id)
  const uploads = useStore(list.store)
  const skills = useQuery({ ...skillsQuery, staleTime: 30_000 }).data?.skills ?? []
  const everyone = useAgents()
  const members = everyone.filter((agent) => room.agents.includes(agent.id))
  const isBusy = useRoom(room.id, (view) => view.state !== null && unfinished(view.state.runs).length > 0)
  const whenBusy = chosenBusy ?? (room.policy.when_busy === 'reject' ? 'enqueue' : room.policy.when_busy)
  const files = readinessOf(uploads)
  const isSomething = (text.trim() !== '' || files !== 'nothing') && files !== 'failed' && skill === null

  useEffect(() => {
    performance.mark('room-ready')
    // On a touch screen the keyboard would cover half of what one came to read.
    if (matchMedia('(pointer: fine)').matches) field.current?.focus()
  }, [])

  useCommands([
    { id: 'focus-composer', title: 'Write a message', group: 'Room', keys: 'c', run: () => field.current?.focus() },
    { id: 'attach', title: 'Attach files', group: 'Room', run: () => picker.current?.click() },
  ])

  const send = (): void => {
    if (!isSomething) return setIsDue(false)
    const canGo = isLive && files !== 'sending'
    setIsDue(!canGo)
    if (!canGo) return
    const attachments = uploads.flatMap(({ attachment }) => attachment ?? [])
    void feed.outbox(room.id).send({ text: text.trim(), attachments, mentions: mentionsIn(text, members), whenBusy: isBusy ? whenBusy : null })
    setText('')
    list.clear()
    setChosenBusy(null)
  }

  useEffect(() => {
    if (isDue) send()
  })

  const call = (command: string): void => {
    const rest = text.replace(/^\s*\/\S*\s*/, '')
    // At once, not with the next picture: by then more may have been typed.
    flushSync(() => {
      setSkill(null)
      setText(command + rest)
    })
    field.current?.focus()
    field.current?.setSelectionRange(command.length, command.length)
  }

  const drag = (isInside: boolean) => (event: DragEvent) => {
    if (!event.dataTransfer.types.includes('Files')) return
    event.preventDefault()
    setIsOver(isInside)
  }

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
      onDragOver={drag(true)}
      onDragLeave={drag(false)}
      onDrop={(event) => {
        drag(false)(event)
        list.add(event.dataTransfer.files)
      }}
    >
      <BudgetNote room={room} />
      <div className={styles.box} data-over={isOver || undefined}>
        {skill && <SkillForm key={skill.name} skill={skill} onDone={(values) => call(commandFor(skill, values))} onCancel={() => call(`/${skill.name} `)} />}
        <UploadChips uploads={uploads} onRetry={(key) => list.retry(key)} onRemove={(key) => list.remove(key)} />
        <MessageField
          ref={field}
          text={text}
          agents={members}
          skills={skills}
          onChange={setText}
          onSend={send}
          onFiles={(chosen) => list.add(chosen)}
          onSkill={(called) => (called.parameters.length > 0 ? setSkill(called) : call(commandFor(called, {})))}
        />
        <div className={styles.tools}>
          <IconButton label="Attach files" onClick={() => picker.current?.click()}>
            <Paperclip size={17} aria-hidden />
          </IconButton>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label="Files to attach"
            onChange={(event) => {
              list.add(event.target.files ?? [])
              event.target.value = ''
            }}
          />
          {isBusy && <BusyChoice agents={members} value={whenBusy} onChange={setChosenBusy} />}
          <div className={styles.end}>
            <span role="status" className={styles.due}>
              {isDue && (isLive ? 'Goes when the files are there' : 'Goes when the room is read')}
              {files === 'failed' && 'Send the file again or remove it'}
            </span>
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
