import { Square } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { Button } from '@/components/ui/button'
import { explain } from '@/lib/api/client'
import { useCommands } from '@/lib/commands'
import { duration } from '@/lib/format'
import { type Stopped, stopRoom } from '../api/room-commands'
import styles from './stop-button.module.css'

/** Stops all runs in the room, and reports it only after they have stopped. */
export function StopButton({ roomId, isBusy }: { roomId: string; isBusy: boolean }): ReactNode {
  const [isStopping, setIsStopping] = useState(false)
  const [said, setSaid] = useState<string | null>(null)

  useEffect(() => {
    if (said === null) return
    const timer = setTimeout(() => setSaid(null), 8000)
    return () => clearTimeout(timer)
  }, [said])

  const stop = async (): Promise<void> => {
    if (isStopping) return
    setIsStopping(true)
    setSaid(null)
    try {
      setSaid(receiptOf(await stopRoom(roomId)))
    } catch (error) {
      setSaid(explain(error))
    }
    setIsStopping(false)
  }

  useCommands([{ id: 'stop', title: 'Stop everything in this room', group: 'Room', keys: 'mod+.', run: () => void stop() }])

  return (
    <>
      <span role="status" className={styles.said}>
        {isStopping ? 'Stopping; waiting until it really has' : said}
      </span>
      {(isBusy || isStopping) && (
        <Button look="danger" isBusy={isStopping} onClick={() => void stop()}>
          <Square size={12} fill="currentColor" aria-hidden />
          <span className={styles.label}>{isStopping ? 'Stopping' : 'Stop'}</span>
        </Button>
      )}
    </>
  )
}

function receiptOf(runs: readonly Stopped[]): string {
  if (runs.length === 0) return 'Nothing was running.'
  const millis = Math.max(...runs.map((run) => run.receipt.millis))
  const processes = runs.reduce((sum, run) => sum + run.receipt.processes, 0)
  const what = runs.length === 1 ? 'Stopped' : `${runs.length} answers stopped`
  const ended = processes > 0 ? `, ${processes} ${processes === 1 ? 'process' : 'processes'} ended` : ''
  return `${what} in ${duration(millis)}${ended}.`
}
