import { useMutation } from '@tanstack/react-query'
import { type ReactNode, memo } from 'react'
import { AgentMark } from '@/components/ui/agent-mark'
import { Button } from '@/components/ui/button'
import { StatusDot } from '@/components/ui/status-dot'
import { unfinished } from '@/feed/rows'
import { textOf } from '@/feed/message-text'
import { type RunState, hasEnded } from '@/feed/state'
import { useRoom, useRun } from '@/feed/use-feed'
import { explain } from '@/lib/api/client'
import { notify } from '@/lib/notices'
import { stopRun } from '../api/room-commands'
import { putInComposer } from '../model/composer-insert'
import { useAgentName } from '../model/use-agents'
import { useTape } from '../model/use-tape'
import { useWholeRun } from '../model/use-whole-run'
import { placeOf } from '../model/waiting-messages'
import { BadEnd } from './answer-end'
import { Entry } from './entry'
import { RepliesTo } from './replies-to'
import { t } from '../texts'
import styles from './run-row.module.css'

/** A run without output: queued, starting, or ended before its first delta. */
export const RunRow = memo(function RunRow({ roomId, runId, previousId }: { roomId: string; runId: string; previousId: string | null }): ReactNode {
  const run = useRun(roomId, runId)
  const name = useAgentName(roomId, run?.agentId ?? null)
  // The reason for an interruption is only in its events.
  useWholeRun(roomId, run, run !== undefined && hasEnded(run))
  if (!run) return null
  return (
    <Entry
      roomId={roomId}
      seq={hasEnded(run) ? run.queuedSeq : null}
      kind="aside"
      time={run.endedAt}
      who={
        <>
          <AgentMark id={run.agentId ?? ''} name={name} />
          <strong dir="auto">{name}</strong>
        </>
      }
    >
      <RepliesTo roomId={roomId} messageId={run.messageId} previousId={previousId} />
      {hasEnded(run) ? <BadEnd roomId={roomId} run={run} /> : <Waiting roomId={roomId} run={run} />}
    </Entry>
  )
})

function Waiting({ roomId, run }: { roomId: string; run: RunState }): ReactNode {
  const posted = useRoom(roomId, (view) => (view.state ? unfinished(view.state.runs).findIndex((other) => other.id === run.id) : 0))
  // With several in the queue somebody may have reordered them.
  const tape = useTape(roomId, posted > 0).data
  const queued = tape ? placeOf(tape.cells, run.id) : -1
  const place = queued < 0 ? posted : queued
  const isQueued = run.status === 'queued'

  const question = useRoom(roomId, (view) => (run.messageId === null ? undefined : view.state?.messages.get(run.messageId)))
  const drop = useMutation({
    mutationFn: () => stopRun(run.id),
    // What was not answered goes back to where it was typed.
    onSuccess: () => question?.author.kind === 'person' && putInComposer(roomId, textOf(question)),
    onError: (error) => notify(explain(error), 'problem'),
  })

  return (
    <div className={styles.waiting}>
      <StatusDot status={isQueued ? 'idle' : 'working'} />
      <span>{isQueued ? turn(place) : (run.activity ?? t.starting)}</span>
      {isQueued && place > 0 && (
        <Button size="small" look="quiet" isBusy={drop.isPending || drop.isSuccess} onClick={() => drop.mutate()}>
          {t.cancel}
        </Button>
      )}
    </div>
  )
}

function turn(place: number): string {
  if (place <= 0) return t.startingTitle
  return place === 1 ? t.nextUpTitle : t.queuedAhead(place)
}
