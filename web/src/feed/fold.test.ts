import { describe, expect, it } from 'vitest'
import { foldRoom } from './fold-room'
import { fromHistory, withRuns } from './snapshot'
import { textOf } from './message-text'
import { type Message, type RunState, emptyRoom } from './state'
import { epoch, events, plainFold, roomId, runs, steps } from './testing/journal'

/** Without the times of tools, which only events have. */
function withoutTimes(message: Message | undefined): unknown {
  const parts = message?.parts.map((part) => (part.type === 'tool' ? { ...part, startedAt: undefined, endedAt: undefined } : part))
  return message && { ...message, parts }
}

describe('the fold', () => {
  it('changes after each event exactly what the server’s fold changes', () => {
    let state = emptyRoom(roomId, epoch)
    for (const { event, change } of steps) {
      const before = state
      state = foldRoom(before, [event])
      const changed = [...state.messages].filter(([id, message]) => before.messages.get(id) !== message)
      const expected = change.message ? [...fromHistory(roomId, { epoch, head: event.seq, messages: [change.message], has_more: false }).messages] : []
      const note = `seq ${event.seq}, ${event.type}`
      expect(changed.map(([, message]) => withoutTimes(message)), note).toEqual(expected.map(([, message]) => withoutTimes(message)))
      if (change.message) expect(textOf(changed[0]?.[1] as Message), note).toBe(change.message.text)
      if (change.message) expect(textOf(changed[0]?.[1] as Message, 'thinking'), note).toBe(change.message.thinking)
    }
  })

  it('adds up what a run has used as the server does', () => {
    const reports = steps.filter((step) => step.change.spent)
    expect(reports.length).toBeGreaterThan(5)
    for (const { event, change } of reports) {
      const run = plainFold(event.seq).runs.get(event.run_id ?? '')
      expect(run && { usage: run.usage, cost: run.cost }, `seq ${event.seq}`).toEqual({ usage: change.spent?.usage, cost: change.spent?.cost })
      if (change.spent?.model) expect(run?.model).toBe(change.spent.model)
    }
  })

  it('ends every run as REST returns it', () => {
    const folded = plainFold()
    const fromRest = withRuns({ ...emptyRoom(roomId, epoch), seq: events.length }, runs)
    expect(folded.runs.size).toBe(runs.length)
    const summary = ({ id, status, usage, cost, model, durationMs, error, receipt, messageId, queuedSeq, startedAt, endedAt }: RunState) => {
      return { id, status, usage, cost, model, durationMs, error, receipt, messageId, queuedSeq, startedAt, endedAt }
    }
    for (const run of folded.runs.values()) expect(summary(run)).toEqual(summary(fromRest.runs.get(run.id) as RunState))
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
    const approvals = [...plainFold().runs.values()].flatMap((run) => run.approvals)
    expect(approvals.map(({ decision, isRemembered }) => (isRemembered ? `${decision}, remembered` : decision))).toEqual([
      'allow',
      'deny',
      'allow, remembered',
      'allow',
      'expired',
      'allow',
      'expired',
    ])
    expect(approvals.map(({ isQuestion }) => isQuestion)).toEqual([false, false, false, true, false, false, false])
    expect(approvals[0]?.changedInput).toEqual({ command: 'rm -r build/cache' })
  })

  it('waits for an approval until all of a run are decided', () => {
    const statusAfter = (seq: number): string | undefined => {
      const event = events[seq - 1]
      return plainFold(seq).runs.get(event?.run_id ?? '')?.status
    }
    const decided = events.filter((event) => event.type === 'approval_resolved').map((event) => statusAfter(event.seq))
    const asked = events.filter((event) => event.type === 'approval_requested').map((event) => statusAfter(event.seq))
    expect(new Set(asked)).toEqual(new Set(['waiting_for_approval']))
    // Of the two requests that are open at the same time, the first decision leaves one open.
    expect(decided).toEqual(['running', 'running', 'running', 'running', 'waiting_for_approval', 'running', 'running'])
  })
})
