import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { api } from '@/lib/api/client'
import { execute } from './execute'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

it('takes a line that is silent for long for a dead one', async () => {
  let wire: ReadableStreamDefaultController<Uint8Array> | undefined
  const data = new ReadableStream<Uint8Array>({
    start(controller) {
      wire = controller
    },
  })
  vi.spyOn(api, 'POST').mockResolvedValue({ data, response: new Response() } as never)
  const send = (text: string): void => wire?.enqueue(new TextEncoder().encode(text))

  const events = execute('a', 'Go', new AbortController().signal)
  const first = events.next()
  await vi.advanceTimersByTimeAsync(30_000)
  send(': keep-alive\n\n')
  await vi.advanceTimersByTimeAsync(30_000)
  send('event: status\ndata: {}\n\n')
  expect(await first).toEqual({ done: false, value: { event: 'status', data: '{}' } })

  const refused = expect(events.next()).rejects.toThrow('silent')
  await vi.advanceTimersByTimeAsync(41_000)
  await refused
})
