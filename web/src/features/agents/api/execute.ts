import { ApiError, answerOf, api, once } from '@/lib/api/client'
import { type SseEvent, SseParser } from '../model/sse'
import { t } from '../texts'

/** The server sends a keep-alive every 15 seconds; a connection silent for this long is dead. */
const longestSilence = 40_000

/** Sends a task to an agent and yields its events until the server ends the stream. */
export async function* execute(agentId: string, message: string, signal: AbortSignal): AsyncGenerator<SseEvent> {
  const params = { path: { id: agentId }, header: once() }
  const request = api.POST('/api/execute/agent/{id}', { params, body: { message }, parseAs: 'stream', signal })
  const stream = (await answerOf(request)) as ReadableStream<Uint8Array> | null
  if (!stream) throw new ApiError(t.theServerAnsweredWithNothing, 'empty', 200)
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  const parser = new SseParser()
  try {
    for (;;) {
      const { done, value } = await withinDeadline(reader.read())
      if (done) return
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        if (event.data === 'done') return
        yield event
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

async function withinDeadline<T>(read: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ApiError(t.theServerHasGoneSilent, 'silent', 0)), longestSilence)
  })
  try {
    return await Promise.race([read, silence])
  } finally {
    clearTimeout(timer)
  }
}
