import { useMutation } from '@tanstack/react-query'
import { Pause, Play, StepForward } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { explain } from '@/lib/api/client'
import type { Agent, Room } from '@/lib/api/types'
import { type TapeAction, changeTape, insertAgent, reorderCells, skipCell } from '../api/tape'
import { useTape } from '../model/use-tape'
import { InsertAgent } from './insert-agent'
import { TapeCells } from './tape-cells'
import { t } from '../texts'
import styles from './tape-section.module.css'

/** Who answers now and next, and why; a person can pause the plan, go on step by step, skip, reorder and insert. */
export function TapeSection({ room, members }: { room: Room; members: readonly Agent[] }): ReactNode {
  const { data: tape, keep, refresh } = useTape(room.id)
  const act = useMutation({ mutationFn: (action: TapeAction) => changeTape(room.id, action), onSuccess: keep })
  const skip = useMutation({ mutationFn: (cell: string) => skipCell(room.id, cell), onSuccess: keep })
  const insert = useMutation({ mutationFn: (agent: string) => insertAgent(room.id, agent), onSuccess: keep })
  const reorder = useMutation({
    mutationFn: (cells: string[]) => reorderCells(room.id, cells),
    onSuccess: keep,
    // One of the cells may have begun in the meantime.
    onError: refresh,
  })
  const error = act.error ?? skip.error ?? insert.error ?? reorder.error
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
        <TapeCells
          cells={tape.cells}
          isBusy={skip.isPending || reorder.isPending}
          onSkip={(cell) => skip.mutate(cell)}
          onReorder={(cells) => reorder.mutate(cells)}
        />
      )}
      {(tape.cells.length > 0 || isPaused) && <InsertAgent members={members} isBusy={insert.isPending} onInsert={(agent) => insert.mutate(agent)} />}
      {error && (
        <p className={styles.problem} role="alert">
          {explain(error)}
        </p>
      )}
    </section>
  )
}
