import type { RunState } from '@/feed/state'
import { receiptText } from '@/lib/receipt'
import { t } from '../texts'

export interface End {
  kind: 'failed' | 'stopped'
  title: string
  detail: string | null
}

/** How a run that did not complete came to its end, for people. */
export function endOf(run: RunState | undefined): End {
  switch (run?.status) {
    case 'failed':
      return { kind: 'failed', title: run.error?.message ?? t.itFailed, detail: run.error ? t.errorCode(run.error.code) : null }
    case 'cancelled':
      return run.startedAt === null ? { kind: 'stopped', title: t.canceledBeforeItStarted, detail: null } : { kind: 'stopped', title: t.stopped, detail: receiptOf(run) }
    case 'interrupted':
      return run.startedAt === null
        ? { kind: 'stopped', title: t.notStarted(reasonWords[run.reason ?? ''] ?? t.interruptedWord), detail: null }
        : { kind: 'stopped', title: interruption(run.reason), detail: receiptOf(run) }
    default:
      return { kind: 'stopped', title: t.stoppedEarly, detail: null }
  }
}

/** A server that went down has measured nothing. */
function receiptOf({ receipt, reason }: RunState): string | null {
  return receipt && reason !== 'crash' ? receiptText(receipt) : null
}

const reasonWords: Record<string, string> = {
  get new_message() { return t.replacedByANewerMessage },
  get shutdown() { return t.theServerWasStopped },
  get crash() { return t.theServerRestarted },
}

function interruption(reason: string | null): string {
  switch (reason) {
    case 'new_message':
      return t.replacedByANewerMessageTitle
    case 'shutdown':
      return t.theServerWasStoppedWhileThisWas
    case 'crash':
      return t.theServerRestartedWhileThisWasRunning
    default:
      return t.interrupted
  }
}
