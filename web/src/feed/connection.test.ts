import { describe, expect, it } from 'vitest'
import { backoff } from './backoff'
import { Connection, type ConnectionStatus, type LineEvents } from './connection'
import { VirtualClock } from './testing/virtual-clock'

function setting(): { clock: VirtualClock; connection: Connection; lines: LineEvents[]; states: string[]; sent: string[] } {
  const clock = new VirtualClock()
  const lines: LineEvents[] = []
  const sent: string[] = []
  const states: string[] = []
  const open = (events: LineEvents) => {
    lines.push(events)
    return { send: (text: string) => void sent.push(text), close: () => {} }
  }
  const onStatus = ({ state }: ConnectionStatus): void => {
    if (states.at(-1) !== state) states.push(state)
  }
  const connection = new Connection(open, clock, { onMessage: () => {}, onStatus })
  return { clock, connection, lines, states, sent }
}

describe('a connection', () => {
  it('goes from connecting to connected, and after a break by reconnecting back', async () => {
    const { clock, connection, lines, states } = setting()
    connection.start()
    lines.at(-1)?.onOpen()
    lines.at(-1)?.onClose()
    await clock.pass(600)
    lines.at(-1)?.onOpen()
    expect(states).toEqual(['connecting', 'connected', 'reconnecting', 'connected'])
    expect(lines.length).toBe(2)
  })

  it('says that it is lost after many attempts, goes on trying, and tries at once when asked', async () => {
    const { clock, connection, lines, states } = setting()
    connection.start()
    for (let i = 0; i < 8; i += 1) {
      lines.at(-1)?.onClose()
      await clock.pass(15_000)
    }
    expect(states.at(-1)).toBe('lost')
    const before = lines.length
    lines.at(-1)?.onClose()
    connection.retry()
    expect(lines.length).toBe(before + 1)
    lines.at(-1)?.onOpen()
    expect(states.at(-1)).toBe('connected')
  })

  it('asks a silent server whether it is there, and hangs up on one that is not', async () => {
    const { clock, connection, lines, states, sent } = setting()
    connection.start()
    lines.at(-1)?.onOpen()
    await clock.pass(21_000)
    expect(sent).toEqual(['{"type":"ping"}'])
    lines.at(-1)?.onText('{"type":"pong"}')
    await clock.pass(6000)
    expect(states.at(-1)).toBe('connected')
    await clock.pass(20_000)
    expect(states.at(-1)).toBe('reconnecting')
  })

  it('gives up on a line that never opens, and hears nothing from one it gave up', async () => {
    const { clock, connection, lines, states } = setting()
    connection.start()
    await clock.pass(11_000)
    expect(lines.length).toBe(2)
    lines[0]?.onOpen()
    expect(states.at(-1)).toBe('reconnecting')
  })

  it('starts once, stays stopped whatever the network does, and starts again', async () => {
    const { clock, connection, lines } = setting()
    connection.start()
    connection.start()
    lines.at(-1)?.onClose()
    connection.start()
    expect(lines.length).toBe(1)
    connection.stop()
    connection.drop()
    connection.retry()
    await clock.pass(60_000)
    expect(lines.length).toBe(1)
    connection.start()
    expect(lines.length).toBe(2)
  })

  it('waits longer each time, never more than three seconds, and not everyone the same', () => {
    const waits = [0, 1, 2, 3, 4, 5, 6, 20].map((attempt) => backoff(attempt, () => 0))
    expect(waits).toEqual([250, 500, 1000, 1500, 1500, 1500, 1500, 1500])
    expect(backoff(20, () => 0.999)).toBeLessThanOrEqual(3000)
    expect(backoff(3, () => 0.2)).not.toBe(backoff(3, () => 0.8))
  })
})
