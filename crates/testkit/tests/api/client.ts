// What a program does that was generated from the document: create an agent, a room and a message, upload a file, page,
// follow and cancel. It compiles without a cast.
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.js'

type Event = components['schemas']['Event']

const [, , baseUrl = '', token = ''] = process.argv
const api = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } })
const signal = AbortSignal.timeout(60_000)

function found<T>(answer: { data?: T; error?: { code: string; detail: string }; response: Response }): T {
  const { data, error, response } = answer
  if (data === undefined) throw new Error(`${response.url}: ${response.status} ${error?.code}: ${error?.detail}`)
  return data
}

function check(fact: boolean, complaint: string): void {
  if (!fact) throw new Error(complaint)
}

/** The events of a stream. */
async function* read(stream: ReadableStream<Uint8Array>): AsyncGenerator<Event> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of stream) {
    rest += decoder.decode(bytes, { stream: true })
    const frames = rest.split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      const line = frame.split('\n').find((one) => one.startsWith('data:'))
      if (line !== undefined && frame.includes('id:')) yield JSON.parse(line.slice('data:'.length))
    }
  }
}

const agent = found(await api.POST('/api/agents', { body: { name: 'typed', provider: 'scripted' } }))
const room = found(await api.POST('/api/rooms', { body: { name: 'typed', agents: [agent.id] } }))
const path = { id: room.id }
const upload = found(
  await api.POST('/api/uploads', {
    params: { query: { name: 'a.txt' } },
    body: 'hello',
    bodySerializer: (body) => body,
    headers: { 'content-type': 'application/octet-stream' },
  }),
)
check(upload.bytes === 5, 'the file is not complete')
const attachment = { name: upload.name, media_type: upload.media_type, url: upload.url }
// Only stored: the scripted agent reads a command to its end, which would be the list of files.
found(await api.POST('/api/rooms/{id}/messages', { params: { path }, body: { text: 'Look', attachments: [attachment], run: false } }))
const header = { 'Idempotency-Key': 'typed-1' }
const posted = found(await api.POST('/api/rooms/{id}/messages', { params: { path, header }, body: { text: '!count 5 1' } }))

// The stream of the room, until the answer is complete.
const followed = found(
  await api.GET('/api/rooms/{id}/events', {
    params: { path, query: { after: '0' } },
    headers: { accept: 'text/event-stream' },
    parseAs: 'stream',
    signal,
  }),
)
let text = ''
let seen = 0
if (followed === null) throw new Error('no stream')
for await (const event of read(followed)) {
  seen = event.seq
  if (event.type === 'content_delta') text += event.data.delta
  if (event.type === 'stream_end') {
    check(event.data.response_text === text, `${text} is not the whole answer`)
    break
  }
}
check(text === '1 2 3 4 5', `the answer is ${text}`)

// The same in pages.
let after = '0'
const pages: number[] = []
while (pages.length < seen) {
  const page = found(await api.GET('/api/rooms/{id}/events', { params: { path, query: { after, limit: 3 } } }))
  if (!('events' in page)) throw new Error('a stream was not asked for')
  check(page.events.length > 0, 'an empty page')
  for (const event of page.events) pages.push(event.seq)
  after = `${page.epoch}-${pages.at(-1)}`
}
check(
  pages.every((seq, index) => seq === index + 1),
  `the pages have ${pages}`,
)
const run = found(await api.GET('/api/runs/{id}', { params: { path: { id: posted.runs[0]?.id ?? '' } } }))
check(run.status === 'completed' || run.status === 'running', run.status)

const slow = found(await api.POST('/api/rooms/{id}/messages', { params: { path }, body: { text: '!count 1000 1000' } }))
const stopped = found(await api.POST('/api/rooms/{id}/cancel', { params: { path } }))
check(stopped.count === 1 && stopped.runs[0]?.id === slow.runs[0]?.id, 'the run was not cancelled')

const names: string[] = []
for (let before: string | undefined; ; ) {
  const page = found(await api.GET('/api/rooms', { params: { query: { limit: 1, before } } }))
  names.push(...page.rooms.map((listed) => listed.name))
  if (typeof page.next !== 'string') break
  before = page.next
}
check(names.includes('typed'), 'the room is in no page')
const changed = await api.PATCH('/api/agents/{id}', { params: { path: { id: agent.id } }, body: { name: 'typed again', model: null } })
check(found(changed).name === 'typed again', 'the agent was not renamed')
const missing = await api.GET('/api/rooms/{id}', { params: { path: { id: agent.id } } })
check(missing.error?.code === 'not_found', 'a problem has its code')
