import { useMutation } from '@tanstack/react-query'
import { Square } from 'lucide-react'
import { type ReactNode, useEffect } from 'react'
import { Button } from '@/components/ui/button'
import { useRoom } from '@/feed/use-feed'
import { explain } from '@/lib/api/client'
import { useCommands } from '@/lib/commands'
import { duration } from '@/lib/format'
import { type Stopped, stopRoom } from '../api/room-commands'
import { t } from '../texts'
import styles from './stop-button.module.css'

/** Stops all runs in the room, and reports it only after they have stopped. */
export function StopButton({ roomId, isBusy }: { roomId: string; isBusy: boolean }): ReactNode {
  const { mutate, reset, status, data, error, isPending: isStopping } = useMutation({ mutationFn: () => stopRoom(roomId) })
  const result = error ? explain(error) : data && receiptOf(data)

  const newest = useRoom(roomId, (view) => Math.max(0, ...[...(view.state?.runs.values() ?? [])].map((run) => run.queuedSeq ?? 0)))
  // The result of an earlier stop says nothing about a run that came after it.
  useEffect(() => reset, [newest, reset])

  // The result is shown for a moment.
  useEffect(() => {
    if (status !== 'success' && status !== 'error') return
    const timer = setTimeout(reset, 8000)
    return () => clearTimeout(timer)
  }, [status, reset])

  const stop = (): void => {
    if (!isStopping) mutate()
  }

  useCommands([{ id: 'stop', title: t.stopEverythingInThisRoom, group: 'room', keys: 'mod+.', run: stop }])

  return (
    <>
      <span role="status" className={styles.result}>
        {isStopping ? t.stopping : result}
      </span>
      {(isBusy || isStopping) && (
        <Button look="danger" isBusy={isStopping} onClick={stop}>
          <Square size={12} fill="currentColor" aria-hidden />
          <span className={styles.label}>{isStopping ? t.stopping : t.stop}</span>
        </Button>
      )}
    </>
  )
}

function receiptOf(runs: readonly Stopped[]): string {
  if (runs.length === 0) return t.nothingWasRunning
  const millis = Math.max(...runs.map((run) => run.receipt.millis))
  const processes = runs.reduce((sum, run) => sum + run.receipt.processes, 0)
  const what = runs.length === 1 ? t.stopped : t.answersStopped(runs.length)
  const ended = processes > 0 ? t.ended(processes, processes === 1 ? t.process : t.processes) : ''
  const took = millis < 1000 ? '' : t.in(duration(millis))
  return `${what}${took}${ended}`
}
