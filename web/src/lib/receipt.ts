import type { Receipt } from './api/types'
import { duration } from './format'

/** What stopping took, from the receipt. */
export function receiptText({ millis, processes, signals }: Receipt): string {
  const took = millis < 1 ? 'It stopped at once' : `It had really stopped after ${duration(millis)}`
  if (processes === 0) return signals.length === 0 ? `${took}.` : `${took}, by ${signals.join(', ')}.`
  const what = processes === 1 ? '1 process was ended' : `${processes} processes were ended`
  return signals.length === 0 ? `${took}; ${what}.` : `${took}; ${what} with ${signals.join(', ')}.`
}
