import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Pause, Play, SkipForward, StepForward } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button, IconButton } from '@/components/ui/button'
import { unfinished } from '@/feed/rows'
import { useRoom } from '@/feed/use-feed'
import { explain } from '@/lib/api/client'
import type { Room, Tape } from '@/lib/api/types'
import { type TapeAction, changeTape, skipCell, tapeQuery } from '../api/tape'
import { cellReason, cellStatus } from '../model/tape-words'
import { useAgents } from '../model/use-agents'
import { t } from '../texts'
import styles from './tape-section.module.css'

/** Who answers now and next, and why; a person can pause the plan, go on step by step, and skip. */
export function TapeSection({ room }: { room: Room }): ReactNode {
  const queries = useQueryClient()
  const runs = useRoom(room.id, (view) => (view.state ? unfinished(view.state.runs).map(({ id, status }) => `${id} ${status}`).join() : ''))
  const query = tapeQuery(room.id, runs)
  const { data: tape } = useQuery(query)
  const agents = useAgents()
  const nameOf = (id: string): string => agents.find((agent) => agent.id === id)?.name ?? t.agentWord
  const keep = (next: Tape): void => void queries.setQueryData(query.queryKey, next)
  const act = useMutation({ mutationFn: (action: TapeAction) => changeTape(room.id, action), onSuccess: keep })
  const skip = useMutation({ mutationFn: (cell: string) => skipCell(room.id, cell), onSuccess: keep })
  const error = act.error ?? skip.error
  const isPaused = tape?.state === 'paused'
  if (!tape) return null

  return (
    <section className={styles.tape} aria-label={t.upNext}>
      <div className={styles.head}>
        <h3>{t.upNext}</h3>
        {isPaused ? (
          <>
            <Button size="small" isBusy={act.isPending} onClick={() => act.mutate('step')}>
              <StepForward size={13} aria-hidden />
              {t.step}
            </Button>
            <Button size="small" isBusy={act.isPending} onClick={() => act.mutate('resume')}>
              <Play size={13} aria-hidden />
              {t.resume}
            </Button>
          </>
        ) : (
          <Button size="small" isBusy={act.isPending} onClick={() => act.mutate('pause')}>
            <Pause size={13} aria-hidden />
            {t.pause}
          </Button>
        )}
      </div>
      {isPaused && <p role="status">{t.pausedNobodyStarts}</p>}
      {tape.cells.length === 0 ? (
        <p>{t.nobodyIsNext}</p>
      ) : (
        <ol>
          {tape.cells.map((cell) => {
            const names = cell.agents.map(nameOf).join(', ')
            return (
              <li key={cell.id} data-status={cell.status}>
                <span className={styles.who}>
                  <strong dir="auto">{names}</strong>
                  <span>{[cellStatus(cell.status), cellReason(cell.reason)].join(' · ')}</span>
                </span>
                {cell.status === 'planned' && (
                  <IconButton label={t.skipAgent(names)} disabled={skip.isPending} onClick={() => skip.mutate(cell.id)}>
                    <SkipForward size={15} aria-hidden />
                  </IconButton>
                )}
              </li>
            )
          })}
        </ol>
      )}
      {error && (
        <p className={styles.problem} role="alert">
          {explain(error)}
        </p>
      )}
    </section>
  )
}
