import type { ProjectCommand } from '@/lib/api/types'
import { t } from '../texts'

/** How a command stands, in a few words. */
export function commandWords({ state, exit_code, signal, has_processes }: ProjectCommand): string {
  switch (state) {
    case 'running':
      return t.running
    case 'exited':
      return [exit_code === 0 ? t.succeeded : t.exitedWith(exit_code ?? 0), has_processes && t.leftProcessesRunning].filter(Boolean).join(' · ')
    case 'signaled':
      return t.endedBySignal(signal ?? 0)
    case 'timed_out':
      return t.timedOut
    case 'stopped':
      return t.stopped
    case 'too_much_output':
      return t.tooMuchOutput
    case 'sandbox_ended':
      return t.theSandboxWasStopped
  }
}

export function hasFailed({ state, exit_code }: ProjectCommand): boolean {
  return state !== 'running' && state !== 'stopped' && !(state === 'exited' && exit_code === 0)
}
