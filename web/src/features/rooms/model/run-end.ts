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
      return { kind: 'failed', title: run.error?.message ?? 'It failed.', detail: run.error ? `Error code: ${run.error.code}` : null }
    case 'cancelled':
      return run.startedAt === null ? { kind: 'stopped', title: 'Canceled before it started', detail: null } : { kind: 'stopped', title: 'Stopped', detail: receiptOf(run) }
    case 'interrupted':
      return run.startedAt === null
        ? { kind: 'stopped', title: `Not started: ${reasonWords[run.reason ?? ''] ?? 'interrupted'}`, detail: null }
        : { kind: 'stopped', title: interruption(run.reason), detail: receiptOf(run) }
    default:
      return { kind: 'stopped', title: 'Stopped early', detail: null }
  }
}

/** A server that went down has measured nothing. */
function receiptOf({ receipt, reason }: RunState): string | null {
  return receipt && reason !== 'crash' ? receiptText(receipt) : null
}

const reasonWords: Record<string, string> = {
  new_message: 'replaced by a newer message',
  shutdown: 'the server was stopped',
  crash: 'the server restarted',
}

function interruption(reason: string | null): string {
  switch (reason) {
    case 'new_message':
      return 'Replaced by a newer message'
    case 'shutdown':
      return 'The server was stopped while this was running'
    case 'crash':
      return 'The server restarted while this was running'
    default:
      return 'Interrupted'
  }
}
