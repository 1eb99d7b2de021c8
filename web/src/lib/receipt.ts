import type { Receipt } from './api/types'
import { duration } from './format'
import { t } from './texts'

/** Below this, stopping took no time that a person would notice. */
const atOnce = 1000

/** What stopping took, from the receipt; nothing where it was at once and ended no process. */
export function receiptText({ millis, processes, signals }: Receipt): string | null {
  const took = millis < atOnce ? null : t.tookToStop(duration(millis))
  const by = signals.length > 0 ? t.with(signals.join(', ')) : ''
  const ended = processes === 0 ? null : t.ended(processes === 1 ? t.n1Process : t.processes(processes), by)
  const said = [took, ended].filter((part) => part !== null).join('; ')
  return said === '' ? null : `${said.charAt(0).toUpperCase()}${said.slice(1)}`
}
