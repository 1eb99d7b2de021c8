import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Square } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import { notify } from '@/lib/notices'
import { stopRun } from '../api/runs'
import { t } from '../texts'

/** Reports the stop only after the server has confirmed it. */
export function StopRun({ runId }: { runId: string }): ReactNode {
  const queries = useQueryClient()
  const stop = useMutation({
    mutationFn: () => stopRun(runId),
    onError: (error) => notify(t.theRunWasNotStopped(explain(error)), 'problem'),
    onSettled: () => queries.invalidateQueries({ queryKey: queryKeys.runs.all }),
  })
  return (
    <Button look="danger" isBusy={stop.isPending} onClick={() => stop.mutate()}>
      <Square size={12} fill="currentColor" aria-hidden />
      {stop.isPending ? t.stopping : t.stop}
    </Button>
  )
}
