// The pictures and the recording of the README, written by `cargo xtask screens`. The agents are scripted: what they are told to play would
// stand in the conversation, so the page is given the words of a person in its place.
import { mkdirSync, writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, it } from 'vitest'
import { type Frame, animate } from './harness/apng'
import { report } from './harness/scenes'
import { Stage } from './harness/stage'

const folder = new URL('../../docs/screens/', import.meta.url).pathname
const question = 'Could you look at the parser? Something loses the last frame when a connection ends.'
const order = 'Good find. Please mend the first one; leave the second as it is.'

let stage: Stage
let agents: string[]
beforeAll(async () => {
  mkdirSync(folder, { recursive: true })
  stage = await Stage.open()
  const named = ['Reviewer', 'Builder'].map((name) => stage.server.api<{ id: string }>('/agents', { name, provider: 'scripted' }))
  agents = (await Promise.all(named)).map(({ id }) => id)
  const said = {
    Onboarding: 'Welcome! Begin with ARCHITECTURE.md; it is short.',
    'Release notes': 'The notes for 0.2 are ready to be read.',
    'Flaky tests': 'The third run in a row is green. I will watch two more.',
  }
  for (const [name, text] of Object.entries(said)) await play(await room(name), [{ text }])
})
afterEach(() => stage.closeBrowsers())
afterAll(() => stage.close())

async function room(name: string): Promise<string> {
  return (await stage.server.api<{ id: string }>('/rooms', { name, agents })).id
}

async function play(id: string, events: readonly object[]): Promise<void> {
  await stage.server.api(`/rooms/${id}/messages`, { text: `!script ${JSON.stringify(events)}`, mentions: [agents[0]] })
}

async function idle(id: string): Promise<void> {
  for (;;) {
    const { runs } = await stage.server.api<{ runs: { ended_at: string | null }[] }>(`/runs?room_id=${id}`)
    if (runs.every((run) => run.ended_at)) return
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

/** The room as a person sees it who said this rather than a script. */
async function look(id: string, words: readonly string[], colorScheme: 'light' | 'dark'): Promise<Page> {
  const page = await stage.page('/favicon.svg', { colorScheme, viewport: { width: 1200, height: 780 }, deviceScaleFactor: 1.5, reducedMotion: 'reduce' })
  await page.route('**/api/rooms/*/messages*', async (route) => {
    const response = await route.fetch()
    const history = (await response.json()) as { messages: { author: { kind: string }; parts: { text: string }[] }[] }
    const people = history.messages.filter(({ author }) => author.kind === 'person')
    people.forEach(({ parts }, index) => parts.splice(0, parts.length, { ...parts[0], text: words[index] ?? '' }))
    await route.fulfill({ response, json: history })
  })
  await page.goto(`${stage.url}/rooms/${id}`)
  return page
}

async function picture(page: Page, name: string): Promise<void> {
  await page.evaluate(() => document.fonts.ready)
  await page.waitForTimeout(400)
  await page.screenshot({ path: `${folder}${name}.png` })
}

const looking = [
  { thinking: 'The report came from the parser, so I look there first. The frame that is lost is always the last one.' },
  { tool_use: { id: 't1', name: 'Grep', input: { pattern: 'parse_frame', path: 'src' } } },
  { tool_output: { id: 't1', delta: 'src/frame.rs:88\nsrc/connection.rs:141\n' } },
  { after_ms: 180, tool_result: { id: 't1', content: '2 matches in 2 files' } },
  { tool_use: { id: 't2', name: 'Bash', input: { command: 'cargo test -p frame' } } },
  { after_ms: 1400, tool_result: { id: 't2', content: 'error: test failed, to rerun pass `-p frame --lib`', is_error: true } },
]

it('a tool that asks first', async () => {
  const id = await room('Parser review')
  await play(id, [...looking, { text: `${report.split('\n\n|')[0]}\n\nShall I mend it?` }, { usage: { input_tokens: 4200, output_tokens: 612, cache_read_tokens: 18_000, model: 'claude-sonnet-4-5' } }])
  await idle(id)
  const edit = {
    file_path: 'src/frame.rs',
    old_string: 'let Some(end) = memchr(b\'\\n\', buffer) else { return Ok(None) };\nlet line = buffer.split_to(end);\nFrame::from_line(&line).map(Some)',
    new_string: 'let Some(end) = memchr(b\'\\n\', buffer) else { return last_frame(buffer) };\nlet line = buffer.split_to(end + 1);\nFrame::from_line(&line[..end]).map(Some)',
  }
  await play(id, [{ text: 'The end of the stream now ends a frame too.' }, { tool_use: { id: 'e', name: 'Edit', input: edit } }, { approval: { id: 'e', name: 'Edit', input: edit } }])
  const page = await look(id, [question, order], 'dark')
  await page.getByRole('button', { name: /^Allow$/ }).waitFor()
  await picture(page, 'approval')
})

/** Takes pictures of a page until it is told to stop. */
class Recording {
  private readonly frames: Frame[] = []
  private isRunning = true
  private readonly done: Promise<void>

  constructor(private readonly page: Page) {
    this.done = this.run()
  }

  private async run(): Promise<void> {
    while (this.isRunning) {
      const began = performance.now()
      const png = await this.page.screenshot()
      await this.page.waitForTimeout(Math.max(0, 260 - (performance.now() - began)))
      this.frames.push({ png, millis: Math.round(performance.now() - began) })
    }
  }

  /** The last picture stays for a while before the animation begins again. */
  async stop(): Promise<Buffer> {
    this.isRunning = false
    await this.done
    const last = this.frames.at(-1)
    return animate(last ? [...this.frames, { png: last.png, millis: 3000 }] : [])
  }
}

it('a conversation from the first word to the answer, with a tool that asks first', async () => {
  const demo = (await stage.server.api<{ agents: { id: string; provider: string }[] }>('/agents')).agents.find(({ provider }) => provider === 'scripted')
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Parser review', agents: [agents[0] ?? demo?.id] })
  const page = await stage.page('/favicon.svg', { colorScheme: 'light', viewport: { width: 880, height: 560 } })
  const edit = { file_path: 'src/frame.rs', old_string: 'let line = buffer.split_to(end);', new_string: 'let line = buffer.split_to(end + 1);' }
  const answer = [
    { after_ms: 500, tool_use: { id: 't1', name: 'Grep', input: { pattern: 'parse_frame', path: 'src' } } },
    { after_ms: 700, tool_result: { id: 't1', content: '2 matches in 2 files' } },
    ...'The last frame is lost where it has no newline: the buffer keeps the byte that ended the frame before it.'.split(/(?<= )/).map((text) => ({ after_ms: 60, text })),
    { after_ms: 300, approval: { id: 'e', name: 'Edit', input: edit } },
    ...' Fixed: a frame now takes its newline with it.'.split(/(?<= )/).map((text) => ({ after_ms: 60, text })),
    { usage: { input_tokens: 4200, output_tokens: 612, cache_read_tokens: 18_000, model: 'claude-sonnet-4-5' } },
  ]
  // What is typed goes out as the script that the demo agent plays, and comes back as what was typed.
  const script = `!script ${JSON.stringify(answer)}`
  const within = (text: string): string => JSON.stringify(text).slice(1, -1)
  const shown = (text: string): string => text.replaceAll(within(script), within(question))
  await page.route('**/api/rooms/*/messages', async (route) => {
    const sent = route.request().postData()
    const response = await route.fetch(sent === null ? {} : { postData: sent.replace(within(question), () => within(script)) })
    await route.fulfill({ response, body: shown(await response.text()) })
  })
  await page.routeWebSocket(/./, (client) => {
    client.connectToServer().onMessage((message) => client.send(shown(String(message))))
  })
  await page.goto(`${stage.url}/rooms/${id}`)
  const field = page.getByRole('textbox', { name: 'Message' })
  await field.waitFor()
  await page.evaluate(() => document.fonts.ready)
  const recording = new Recording(page)
  await field.pressSequentially(question, { delay: 22 })
  await field.press('Enter')
  await page.getByRole('button', { name: /^Allow$/ }).waitFor()
  await page.waitForTimeout(1200)
  await page.getByRole('button', { name: /^Allow$/ }).click()
  await page.getByText('takes its newline with it.').waitFor()
  await page.waitForTimeout(600)
  writeFileSync(`${folder}conversation.png`, await recording.stop())
})
