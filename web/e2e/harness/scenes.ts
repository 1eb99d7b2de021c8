import type { Page } from 'playwright-core'
import { RoomView, asDeveloper } from './room'
import type { Stage } from './stage'

export const report = `I looked at the parser. **Two things** stand out:

1. \`parse_frame\` reads past the end when the last frame has no newline.
2. Errors lose their position.

| file | lines | covered |
|---|---:|---:|
| frame.rs | 212 | 94 % |
| error.rs | 48 | 61 % |

\`\`\`rust
/// Takes one frame off the front, or nothing while it is incomplete.
pub fn parse_frame(buffer: &mut BytesMut) -> Result<Option<Frame>, Error> {
    let Some(end) = memchr(b'\\n', buffer) else { return Ok(None) };
    let line = buffer.split_to(end + 1);
    Frame::from_line(&line[..end]).map(Some)
}
\`\`\`

> The second one is older than the rewrite, so it may be on purpose.

- [x] read the code
- [ ] write a test that fails first`

const drawing = `This is how a frame gets lost:

\`\`\`mermaid
graph LR
  A["Bytes arrive"] --> B{Newline?}
  B -->|yes| C[Whole frame]
  B -->|no| D[Wait for more]
  D -.->|connection ends| E(["Lost"])
\`\`\``

const events = [
  { thinking: 'The person wants a review. I will look at the parser first, because that is where the report came from.' },
  { tool_use: { id: 't1', name: 'Grep', input: { pattern: 'parse_frame', path: 'src' } } },
  { tool_output: { id: 't1', delta: 'src/frame.rs:88\nsrc/connection.rs:141\n' } },
  { tool_result: { id: 't1', content: '2 matches in 2 files' } },
  { tool_use: { id: 't2', name: 'Bash', input: { command: 'cargo test -p frame' } } },
  { tool_result: { id: 't2', content: 'error: test failed, to rerun pass `-p frame --lib`', is_error: true } },
  { text: report },
  { usage: { input_tokens: 4200, output_tokens: 612, cache_read_tokens: 18_000, model: 'claude-sonnet-4-5' } },
]

/** A room in which everything that can be seen has happened, ending with a question to the person. */
export async function playEverything(stage: Stage): Promise<string> {
  const { agents } = await stage.server.api<{ agents: { id: string }[] }>('/agents')
  const second = await stage.server.api<{ id: string }>('/agents', { name: 'Reviewer', provider: 'scripted' })
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Parser review', agents: [second.id, agents[0]?.id] })
  const say = (text: string, more: object = {}): Promise<unknown> => stage.server.api(`/rooms/${id}/messages`, { text, mentions: [second.id], ...more })
  await say('Could you look at the parser? Something loses the last frame.', { mentions: [agents[0]?.id] })
  await idle(stage, id)
  await say(`!script ${JSON.stringify(events)}`)
  await idle(stage, id)
  await say(`!script ${JSON.stringify([{ text: drawing }])}`)
  await idle(stage, id)
  await say('!fail over_loaded The model is over capacity; try again in a minute.')
  await idle(stage, id)
  await say('!hang')
  await say('!count 3', { when_busy: 'interrupt' })
  await idle(stage, id)
  await say('!ask Edit {"file_path":"src/frame.rs","old_string":"let line = buffer.split_to(end);\\nOk(None)","new_string":"let line = buffer.split_to(end + 1);\\nFrame::from_line(&line)"}')
  return id
}

async function idle(stage: Stage, room: string): Promise<void> {
  for (;;) {
    const { runs } = await stage.server.api<{ runs: { ended_at: string | null }[] }>(`/runs?room_id=${room}`)
    if (runs.every((run) => run.ended_at)) return
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

/** A file that is there, one on its way, one that failed. */
async function attach(page: Page): Promise<void> {
  const pick = (name: string): Promise<void> => page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.alloc(4200, 'x') })
  await pick('frames-that-were-lost.log')
  await page.getByText('4.2 kB').waitFor()
  await page.route('**/api/uploads*', (route) => (route.request().url().includes('broken') ? route.abort('connectionfailed') : undefined))
  await pick('broken-capture.pcap')
  await page.getByRole('alert').filter({ hasText: 'The connection was lost' }).waitFor()
  await pick('capture.pcap')
  await page.getByRole('progressbar').waitFor()
}

export interface Scene {
  name: string
  path: string
  prepare?: (page: Page) => Promise<void>
}

const notFound: Scene = { name: 'not-found', path: '/nowhere', prepare: (page) => page.getByText('Page not found').waitFor() }

/** Every page and every dialog there is. */
export function scenes(everything: string, empty: string): Scene[] {
  const path = `/rooms/${everything}`
  const ready = (page: Page): Promise<void> => new RoomView(page).button(/^Allow$/).waitFor()
  const toTop = async (page: Page): Promise<void> => {
    await ready(page)
    await page.getByRole('log').evaluate((log) => log.scrollTo(0, 0))
    await page.getByText('Start of conversation').waitFor()
  }
  const menu = async (page: Page, item: string): Promise<void> => {
    await ready(page)
    await page.getByRole('button', { name: 'Room actions' }).click()
    await page.getByRole('menuitem', { name: item }).click()
  }
  return [
    { name: 'welcome', path: `/rooms/${empty}`, prepare: (page) => page.getByText('Try the demo agent').waitFor() },
    { name: 'room', path, prepare: ready },
    { name: 'room-top', path, prepare: toTop },
    { name: 'room-settings', path, prepare: (page) => menu(page, 'Room settings and members') },
    { name: 'delete-room', path, prepare: (page) => menu(page, 'Delete this room') },
    {
      name: 'room-middle',
      path,
      prepare: async (page) => {
        await ready(page)
        await page.getByRole('log').evaluate((log) => log.scrollBy(0, -900))
        const picture = await page.getByRole('img', { name: /^Diagram/ }).getAttribute('src')
        const colours = new Set([...decodeURIComponent(picture ?? '').matchAll(/--[a-z]+:([a-z]+\([^)]*\))/g)].map(([, colour]) => colour))
        if (colours.size < 4) throw new Error(`a diagram in ${colours.size} colours cannot be read: ${[...colours].join(' ')}`)
      },
    },
    {
      name: 'members',
      path,
      prepare: async (page) => {
        await ready(page)
        await page.getByRole('button', { name: 'Members', exact: true }).click()
        await page.getByRole('complementary', { name: 'Members' }).waitFor()
        // Not remembered: the next page is to be seen without them.
        await page.evaluate(() => localStorage.removeItem('greenroom.members'))
      },
    },
    { name: 'attachments', path: `/rooms/${empty}`, prepare: attach },
    {
      name: 'room-menu',
      path,
      prepare: async (page) => {
        await ready(page)
        await page.getByRole('button', { name: 'Room actions' }).click()
      },
    },
    {
      name: 'events',
      path,
      prepare: async (page) => {
        await asDeveloper(page)
        await ready(page)
        await page.getByRole('button', { name: 'Show events' }).last().click()
        await page.getByText('approval_requested', { exact: true }).waitFor()
        // Not remembered: the next page is to be seen as most people see it.
        await page.evaluate(() => localStorage.removeItem('greenroom.preferences'))
      },
    },
    {
      name: 'palette',
      path,
      prepare: async (page) => {
        await ready(page)
        await page.keyboard.press('Control+k')
        await page.getByRole('combobox', { name: 'Search rooms and commands' }).waitFor()
      },
    },
    {
      name: 'shortcuts',
      path,
      prepare: async (page) => {
        await ready(page)
        await page.getByRole('log').focus()
        await page.keyboard.press('?')
        await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor()
      },
    },
    { name: 'room-gone', path: '/rooms/00000000-0000-7000-8000-000000000000', prepare: (page) => page.getByText('Room not found').waitFor() },
    // A server that brings the page itself answers such an address on its own.
    ...(process.env.GREENROOM_EMBEDS_UI ? [] : [notFound]),
  ]
}
