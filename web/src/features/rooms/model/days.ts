import type { Row } from '@/feed/rows'
import type { Message } from '@/feed/state'

type Times = Pick<ReadonlyMap<string, Pick<Message, 'createdAt'>>, 'get'>

/** The time of a message that is the first of its day, else nothing. Rows without a message have no day. */
export function newDayAt(rows: readonly Row[], index: number, messages: Times): string | null {
  const time = timeOf(rows[index], messages)
  if (time === null) return null
  for (let before = index - 1; before >= 0; before -= 1) {
    const earlier = timeOf(rows[before], messages)
    if (earlier !== null) return dayOf(earlier) === dayOf(time) ? null : time
  }
  return time
}

function timeOf(row: Row | undefined, messages: Times): string | null {
  const id = row?.kind === 'message' ? row.id : row?.kind === 'together' ? row.ids[0] : undefined
  return id === undefined ? null : (messages.get(id)?.createdAt ?? null)
}

function dayOf(time: string): string {
  return new Date(time).toDateString()
}
