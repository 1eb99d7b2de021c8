import { Braces, Quote } from 'lucide-react'
import { type ReactNode, memo, useState } from 'react'
import { AgentMark } from '@/components/ui/agent-mark'
import { IconButton } from '@/components/ui/button'
import { CopyButton } from '@/components/ui/copy-button'
import { later } from '@/components/ui/later'
import { textOf } from '@/feed/message-text'
import type { Message, RunState } from '@/feed/state'
import { useRun } from '@/feed/use-feed'
import { usePreference } from '@/lib/preferences'
import { putInComposer, quoted } from '../model/composer-insert'
import { useAgentName } from '../model/use-agents'
import { useIsCritic } from '../model/use-is-critic'
import { useRetry } from '../model/use-retry'
import { useWholeRun } from '../model/use-whole-run'
import { AnswerEnd } from './answer-end'
import { AskAgain } from './ask-again'
import { AnswerParts } from './answer-parts'
import { BranchButton } from './branch-button'
import { Entry } from './entry'
import { LiveLine } from './live-line'
import { RepliesTo } from './replies-to'
import { Whispers } from './whispers'
import { t } from '../texts'
import styles from './whispers.module.css'

const EventsDialog = later(async () => (await import('./events-dialog')).EventsDialog)

interface AnswerProps {
  roomId: string
  message: Message
  /** The message right before it on the screen. */
  previousId: string | null
  isMarked: boolean
}

export const Answer = memo(function Answer({ roomId, message, previousId, isMarked }: AnswerProps): ReactNode {
  const agentId = message.author.kind === 'agent' ? message.author.id : ''
  const name = useAgentName(roomId, agentId)
  const run = useRun(roomId, message.runId)
  const retry = useRetry(roomId, run)
  const isCritic = useIsCritic(roomId, agentId)
  const isDeveloper = usePreference('developer')
  const [isShowingEvents, setIsShowingEvents] = useState(false)
  // History has neither the times of tools, nor approvals, nor why an answer was cut off.
  useWholeRun(roomId, run, message.status !== 'complete' || message.parts.some((part) => part.type === 'tool'))

  return (
    <Entry
      roomId={roomId}
      seq={message.seq}
      kind="answer"
      time={message.createdAt}
      isMarked={isMarked}
      who={
        <>
          <AgentMark id={agentId} name={name} />
          <strong dir="auto">{name}</strong>
          {isCritic && <span className={styles.badge}>{t.criticOnlyPeopleReadThis}</span>}
        </>
      }
      actions={
        <>
          {retry && message.status === 'complete' && <AskAgain roomId={roomId} agentId={agentId} onAsk={(other) => void retry(other)} />}
          <IconButton label={t.quote} onClick={() => putInComposer(roomId, quoted(textOf(message)))}>
            <Quote size={15} aria-hidden />
          </IconButton>
          <CopyButton text={() => textOf(message)} label={t.copyAnswer} />
          {message.status !== 'streaming' && <BranchButton roomId={roomId} messageId={message.id} />}
          {isDeveloper && (
            <IconButton label={t.showEvents} onClick={() => setIsShowingEvents(true)}>
              <Braces size={15} aria-hidden />
            </IconButton>
          )}
        </>
      }
    >
      <RepliesTo roomId={roomId} messageId={run?.messageId ?? null} previousId={previousId} />
      <Whispers texts={run?.whispers ?? noWhispers} />
      <AnswerParts message={message} agent={name} approvals={run?.approvals ?? noApprovals} />
      {message.status === 'streaming' ? <LiveLine message={message} run={run} /> : <AnswerEnd roomId={roomId} message={message} run={run} />}
      {isShowingEvents && (
        <EventsDialog roomId={roomId} after={(run?.queuedSeq ?? message.seq) - 1} runId={message.runId} onClose={() => setIsShowingEvents(false)} />
      )}
    </Entry>
  )
})

const noWhispers: RunState['whispers'] = []
const noApprovals: RunState['approvals'] = []
