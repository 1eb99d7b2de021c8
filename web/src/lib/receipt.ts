import type { Receipt } from './api/types'
import { duration } from './format'

/** Below this, stopping took no time that a person would notice. */
const atOnce = 1000

/** What stopping took, from the receipt; nothing where it was at once and ended no process. */
export function receiptText({ millis, processes, signals }: Receipt): string | null {
  const took = millis < atOnce ? null : `took ${duration(millis)} to stop`
  const by = signals.length > 0 ? ` with ${signals.join(', ')}` : ''
  const ended = processes === 0 ? null : `${processes === 1 ? '1 process' : `${processes} processes`} ended${by}`
  const said = [took, ended].filter((part) => part !== null).join('; ')
  return said === '' ? null : `${said.charAt(0).toUpperCase()}${said.slice(1)}`
}
