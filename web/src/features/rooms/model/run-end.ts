import type { RunState } from '@/feed/state'
import { receiptText } from '@/lib/receipt'

export interface End {
  kind: 'failed' | 'stopped'
  title: string
  detail: string | null
}

/** How a run that did not complete came to its end, for people. */
export function endOf(run: RunState | undefined): End {
  switch (run?.status) {
    case 'failed':
      return { kind: 'failed', title: run.error?.message ?? 'It failed.', detail: run.error ? `Code ${run.error.code}` : null }
    case 'cancelled':
      return { kind: 'stopped', title: 'Stopped', detail: run.receipt ? receiptText(run.receipt) : null }
    case 'interrupted':
      return { kind: 'stopped', title: interruption(run.reason), detail: run.receipt ? receiptText(run.receipt) : null }
    default:
      return { kind: 'stopped', title: 'Stopped early', detail: null }
  }
}

function interruption(reason: string | null): string {
  switch (reason) {
    case 'new_message':
      return 'Interrupted by a newer message'
    case 'shutdown':
      return 'Interrupted: the server was stopped'
    case 'crash':
      return 'Interrupted: the server went down'
    default:
      return 'Interrupted'
  }
}
