import { useQuery } from '@tanstack/react-query'
import { ArrowUp, Paperclip } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { IconButton } from '@/components/ui/button'
import { later } from '@/components/ui/later'
import { queuedMessages, unfinished } from '@/feed/rows'
import { textOf } from '@/feed/message-text'
import { useFeed, useRoom } from '@/feed/use-feed'
import { skillsQuery } from '@/lib/api/queries'
import type { Room, WhenBusy } from '@/lib/api/types'
import { useCommands } from '@/lib/commands'
import { useStore } from '@/lib/store'
import { composerInsert, withInsert } from '../model/composer-insert'
import { mentionsIn, mentionsWith } from '../model/mentions'
import { nameRoom, rememberAgents, titleFrom, isUntitled } from '../model/new-chat'
import type { Skill } from '../model/skill'
import { commandFor } from '../model/skill-command'
import { uploadsIn } from '../model/upload-list'
import { readinessOf } from '../model/uploads'
import { useAgents } from '../model/use-agents'
import { useDraft } from '../model/use-draft'
import { useMentionedFiles } from '../model/use-mentioned-files'
import { usePageDrop } from '@/lib/use-page-drop'
import { BudgetNote } from './budget-note'
import { BusyChoice } from './busy-choice'
import styles from './composer.module.css'
import { MessageField } from './message-field'
import { ModelChoice } from './model-choice'
import { NoAgentsNote } from './no-agents-note'
import { Recipient } from './recipient'
import { StopButton } from './stop-button'
import { UploadChips } from './upload-chips'
import { t } from '../texts'

const SkillForm = later(async () => (await import('./skill-form')).SkillForm)
const QueueList = later(async () => (await import('./queue-list')).QueueList)

/** One can type and send before the room is read and the files are there; what was sent goes when they are. */
export function Composer({ room, isLive }: { room: Room; isLive: boolean }): ReactNode {
  const feed = useFeed()
  const [text, setText] = useDraft(room.id)
  const [chosenBusy, setChosenBusy] = useState<WhenBusy | null>(null)
  const [isDue, setIsDue] = useState(false)
  const [recipient, setRecipient] = useState<string | null>(null)
  const [skill, setSkill] = useState<Skill | null>(null)
  const field = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  const list = uploadsIn(room.id)
  const uploads = useStore(list.store)
  const skills = useQuery({ ...skillsQuery, staleTime: 30_000 }).data?.skills ?? []
  const everyone = useAgents()
  const members = everyone.filter((agent) => room.agents.includes(agent.id))
  const isOver = usePageDrop((dropped) => list.add(dropped))
  const insert = useStore(composerInsert)
  const { files: mentioned, look } = useMentionedFiles(room.project_id ?? null)
  const isBusy = useRoom(room.id, (view) => view.state !== null && unfinished(view.state.runs).length > 0)
  const queued = useRoom(room.id, (view) => queuedMessages(view.state))
  const whenBusy = chosenBusy ?? (room.policy.when_busy === 'reject' ? 'enqueue' : room.policy.when_busy)
  const files = readinessOf(uploads)
  const isSomething = (text.trim() !== '' || files !== 'nothing') && files !== 'failed' && skill === null

  useEffect(() => {
    performance.mark('room-ready')
    // On a touch screen the keyboard would cover half of what one came to read.
    if (matchMedia('(pointer: fine)').matches) field.current?.focus()
  }, [])

  useCommands([
    { id: 'focus-composer', title: t.writeAMessage, group: 'room', keys: 'c', run: () => field.current?.focus() },
    { id: 'attach', title: t.attachFiles, group: 'room', run: () => picker.current?.click() },
  ])

  const title = (first: string): void => {
    const name = titleFrom(first)
    // A room without a name works as well as one with it.
    if (name !== null) void nameRoom(room.id, name).catch(() => {})
  }

  const send = (): void => {
    if (!isSomething) return setIsDue(false)
    const canGo = isLive && files !== 'sending'
    setIsDue(!canGo)
    if (!canGo) return
    const attachments = uploads.flatMap(({ attachment }) => attachment ?? [])
    rememberAgents(room.agents)
    if (isUntitled(room.name)) title(text)
    void feed.outbox(room.id).send({ text: text.trim(), attachments, mentions: mentionsWith(mentionsIn(text, members), recipient), whenBusy: isBusy ? whenBusy : null })
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

  const recall = (): void => {
    const state = feed.room(room.id).snapshot().state
    const own = state?.order.map((id) => state.messages.get(id)).findLast((message) => message?.author.kind === 'person')
    if (own) setText(textOf(own))
  }

  useEffect(() => {
    if (insert?.roomId !== room.id) return
    composerInsert.set(null)
    setText(withInsert(text, insert.text))
    field.current?.focus()
  }, [insert, room.id, setText, text])

  return (
    <form
      className={styles.composer}
      aria-label={t.message}
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <BudgetNote room={room} />
      {room.agents.length === 0 && <NoAgentsNote />}
      {queued > 1 && <QueueList room={room} />}
      <div className={styles.box} data-over={isOver || undefined}>
        {skill && <SkillForm key={skill.name} skill={skill} onDone={(values) => call(commandFor(skill, values))} onCancel={() => call(`/${skill.name} `)} />}
        <UploadChips uploads={uploads} onRetry={(key) => list.retry(key)} onRemove={(key) => list.remove(key)} />
        <MessageField
          ref={field}
          text={text}
          agents={members}
          skills={skills}
          files={mentioned}
          onFolder={look}
          onChange={setText}
          onSend={send}
          onRecall={recall}
          onFiles={(chosen) => list.add(chosen)}
          onSkill={(called) => (called.parameters.length > 0 ? setSkill(called) : call(commandFor(called, {})))}
        />
        <div className={styles.tools}>
          <IconButton label={t.attachFiles} onClick={() => picker.current?.click()}>
            <Paperclip size={17} aria-hidden />
          </IconButton>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label={t.filesToAttach}
            onChange={(event) => {
              list.add(event.target.files ?? [])
              event.target.value = ''
            }}
          />
          <ModelChoice room={room} members={members} />
          {members.length > 1 && <Recipient agents={members} value={recipient} onChange={setRecipient} />}
          {isBusy && <BusyChoice agents={members} value={whenBusy} queued={queued} onChange={setChosenBusy} />}
          <div className={styles.end}>
            <span role="status" className={styles.due}>
              {isDue && (isLive ? t.sendsWhenUploadsFinish : t.sendsOnceTheRoomHasLoaded)}
              {files === 'failed' && t.retryOrRemoveTheFailedUpload}
            </span>
            <StopButton roomId={room.id} isBusy={isBusy} />
            <button type="submit" className={styles.send} disabled={!isSomething || isDue} aria-label={t.send} title={t.sendEnter}>
              <ArrowUp size={18} aria-hidden />
            </button>
          </div>
        </div>
      </div>
    </form>
  )
}
