import { describe, expect, it } from 'vitest'
import { fromHistory, withRuns } from './snapshot'
import { type RoomState, type RunState, textOf } from './state'
import { events, plainFold, roomId, snapshots } from './testing/journal'

/** Without times: history has none for tools, and a stored message is stamped a moment before its event. */
function withoutTimes(state: RoomState): unknown[] {
  return state.order.map((id) => {
    const message = state.messages.get(id)
    const parts = message?.parts.map((part) => (part.type === 'tool' ? { ...part, startedAt: 0, endedAt: 0 } : part))
    return { ...message, createdAt: 0, parts }
  })
}

describe('the fold', () => {
  it('gives what the server folded, at every moment that was recorded', () => {
    expect(snapshots.length).toBeGreaterThan(5)
    for (const { history } of snapshots) {
      const server = fromHistory(roomId, history, 1000)
      expect(withoutTimes(plainFold(history.head))).toEqual(withoutTimes(server))
    }
  })

  it('agrees with what the server says about each run', () => {
    const last = snapshots.at(-1)
    if (!last) throw new Error('nothing was recorded')
    const told = withRuns(fromHistory(roomId, last.history, 1000), last.runs)
    const folded = plainFold(last.history.head)
    expect(folded.runs.size).toBe(last.runs.length)
    const summary = ({ id, status, usage, cost, durationMs, error, receipt, messageId, queuedSeq, streamId }: RunState) => {
      return { id, status, usage, cost, durationMs, error, receipt, messageId, queuedSeq, streamId }
    }
    for (const run of folded.runs.values()) expect(summary(run)).toEqual(summary(told.runs.get(run.id) as RunState))
  })

  it('ends each stream with the text that the server says it has', () => {
    const state = plainFold()
    const ends = events.filter((event) => event.type === 'stream_end')
    expect(ends.length).toBeGreaterThan(10)
    for (const { data } of ends) {
      const end = data as { stream_id: string; response_text: string; thinking_text: string }
      const message = state.messages.get(end.stream_id)
      expect(message && [textOf(message), textOf(message, 'thinking')]).toEqual([end.response_text, end.thinking_text])
    }
  })

  it('keeps every approval with its decision', () => {
    const decisions = [...plainFold().runs.values()].flatMap((run) => run.approvals).map((approval) => approval.decision)
    expect(decisions).toEqual(['allow', 'deny', 'allow', 'allow'])
  })
})
