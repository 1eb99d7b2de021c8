import { describe, expect, it } from 'vitest'
import { type Execution, begun, ended, fold, withAnswered, withRecord } from './execution'
import { SseParser } from './sse'

const usage = { input_tokens: 1, output_tokens: 2, cache_read_tokens: 3, cache_write_tokens: 4 }
const frame = (event: string, data: object): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
const queued = frame('status', { status: 'queued', run_id: 'r', room_id: 'o' })

function play(text: string, chunk = text.length): Execution {
  const parser = new SseParser()
  let state = begun
  for (let at = 0; at < text.length; at += chunk) for (const event of parser.push(text.slice(at, at + chunk))) state = fold(state, event)
  return state
}

describe('an execution', () => {
  const whole = [
    queued,
    ': keep-alive\n\n',
    frame('status', { status: 'running', provider: 'p', model: null }),
    frame('message', { type: 'thinking', delta: 'Hm.' }),
    frame('message', { type: 'tool_use', id: 't', name: 'Bash', input: { cmd: 'ls' } }),
    frame('message', { type: 'tool_result', id: 't', content: 'a\n\nb', is_error: true }),
    frame('message', { type: 'assistant', delta: 'Hello ' }),
    frame('message', { type: 'assistant', delta: 'wrong' }),
    frame('completion', { text: 'Hello', usage, cost: 0.5, duration_ms: 7 }),
    'data: done\n\n',
  ].join('')

  it.each([1, 3, 64, 100_000])('is the same however its bytes are cut: %i at a time', (chunk) => {
    expect(play(whole, chunk)).toEqual({
      runId: 'r',
      roomId: 'o',
      activity: '',
      text: 'Hello',
      thinking: 'Hm.',
      tools: [{ id: 't', name: 'Bash', input: { cmd: 'ls' }, content: 'a\n\nb', state: 'failed' }],
      approvals: [],
      metrics: { usage, cost: 0.5, durationMs: 7 },
      ending: { kind: 'completed', text: null },
    })
  })

  it('waits for a yes until it is answered, here or in the room', () => {
    const asks = frame('status', { status: 'waiting_for_approval', approval_id: 'x', name: 'Bash', input: {} })
    const waiting = play(queued + frame('message', { type: 'tool_use', id: 't', name: 'Bash', input: {} }) + asks)
    expect(waiting.approvals).toEqual([{ id: 'x', name: 'Bash', input: {} }])
    expect(withAnswered(waiting, 'x').approvals).toEqual([])
    const [other] = new SseParser().push(frame('message', { type: 'tool_result', id: 'another', content: '' }))
    expect(other && fold(waiting, other).approvals).toHaveLength(1)
    const [own] = new SseParser().push(frame('message', { type: 'tool_result', id: 't', content: '' }))
    expect(own && fold(waiting, own).approvals).toHaveLength(0)
  })

  it('tells a failure, a stop and a server that goes down apart', () => {
    expect(play(queued + frame('error', { code: 'c', message: 'No.' })).ending).toEqual({ kind: 'failed', text: 'No.' })
    expect(play(queued + frame('cancelled', { status: 'cancelled', text: 'so far' }))).toMatchObject({ text: 'so far', ending: { kind: 'stopped' } })
    expect(play(queued + frame('error', { code: 'server_stopping', message: 'Later.' })).ending?.kind).toBe('lost')
  })

  it('is not moved by garbage or by what comes after its end', () => {
    expect(play('data: {"broken\n\ndata: 7\n\ndata: null\n\n')).toEqual(begun)
    expect(play(whole + frame('message', { type: 'assistant', delta: 'more' })).text).toBe('Hello')
  })

  it('takes its end from the record when the line broke', () => {
    const lost = ended(play(queued), { kind: 'lost', text: null })
    const run = { usage, cost: null, duration_ms: 9, ended_at: null, status: 'running' } as unknown as Parameters<typeof withRecord>[1]
    expect(withRecord(lost, run).ending?.kind).toBe('lost')
    expect(withRecord(lost, { ...run, ended_at: '2026-11-15T09:30:00Z', status: 'completed' })).toMatchObject({ ending: { kind: 'completed' }, metrics: { durationMs: 9 } })
    const failed = { ...run, ended_at: '2026-11-15T09:30:00Z', status: 'failed' as const, error: { code: 'c', message: 'Why.' } }
    expect(withRecord(lost, failed).ending).toEqual({ kind: 'failed', text: 'Why.' })
  })
})
