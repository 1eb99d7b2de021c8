import { useQueryClient } from '@tanstack/react-query'
import { Square } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import { notify } from '@/lib/notices'
import { stopRun } from '../api/runs'

/** Reports the stop only after the server has confirmed it. */
export function StopRun({ runId }: { runId: string }): ReactNode {
  const [isBusy, setIsBusy] = useState(false)
  const queries = useQueryClient()
  const stop = async (): Promise<void> => {
    setIsBusy(true)
    try {
      await stopRun(runId)
    } catch (error) {
      notify(`The run was not stopped. ${explain(error)}`, 'problem')
    }
    await queries.invalidateQueries({ queryKey: queryKeys.runs.all })
    setIsBusy(false)
  }
  return (
    <Button look="danger" isBusy={isBusy} onClick={() => void stop()}>
      <Square size={12} fill="currentColor" aria-hidden />
      {isBusy ? 'Stopping' : 'Stop'}
    </Button>
  )
}
