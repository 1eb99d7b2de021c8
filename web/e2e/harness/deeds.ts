import type { Stage } from './stage'

export interface Deeds {
  reviewer: string
  room: string
  /** Ids of runs, by how they went. */
  priced: string
  unpriced: string
  failed: string
  stopped: string
  waiting: string
}

const script = (...events: object[]): string => `!script ${JSON.stringify(events)}`

/** Half a second of work with tools side by side, one of which fails, at a price that is known. */
const work = script(
  { after_ms: 40, thinking: 'I will look first.' },
  { after_ms: 60, tool_use: { id: 't1', name: 'Grep', input: { pattern: 'parse_frame' } } },
  { after_ms: 20, tool_use: { id: 't2', name: 'Read', input: { path: 'src/frame.rs' } } },
  { after_ms: 80, tool_result: { id: 't1', content: '2 matches' } },
  { after_ms: 50, tool_result: { id: 't2', content: 'fn parse_frame()' } },
  { model_call: true },
  { after_ms: 60, tool_use: { id: 't3', name: 'Bash', input: { command: 'cargo test' } } },
  { after_ms: 120, tool_result: { id: 't3', content: 'error: test failed', is_error: true } },
  { after_ms: 40, text: 'The last frame is lost where it has no newline.' },
  { usage: { input_tokens: 4200, output_tokens: 612, cache_read_tokens: 18_000, model: 'claude-sonnet-4-5' } },
)

/** Runs of every kind, so that lists, charts and timelines have something to show. */
export async function doEverything(stage: Stage): Promise<Deeds> {
  const { agents } = await stage.server.api<{ agents: { id: string }[] }>('/agents')
  const reviewer = (await stage.server.api<{ id: string }>('/agents', { name: 'Reviewer', provider: 'scripted' })).id
  const first = agents[0]?.id
  const other = (await stage.server.api<{ id: string }>('/rooms', { name: 'Small talk', agents: [first] })).id
  const room = (await stage.server.api<{ id: string }>('/rooms', { name: 'Parser review', agents: [reviewer] })).id
  const say = async (text: string, where = room): Promise<string> => {
    const { runs } = await stage.server.api<{ runs: { id: string }[] }>(`/rooms/${where}/messages`, { text })
    return runs[0]?.id ?? ''
  }
  const ended = async (id: string): Promise<string> => {
    for (;;) {
      const run = await stage.server.api<{ ended_at: string | null }>(`/runs/${id}`)
      if (run.ended_at) return id
      await new Promise((resolve) => setTimeout(resolve, 30))
    }
  }
  await ended(await say('Good morning', other))
  const priced = await ended(await say(work))
  const unpriced = await ended(await say(script({ text: 'Done.' }, { usage: { input_tokens: 900, output_tokens: 80, model: 'a-model-of-our-own' } })))
  const failed = await ended(await say('!fail over_loaded The model is over capacity; try again in a minute.'))
  const stopped = await say('!hang')
  await begun(stage, stopped)
  await stage.server.api(`/runs/${stopped}/cancel`, {})
  const waiting = await say('!ask Bash {"cmd":"ls -l"}')
  return { reviewer, room, priced, unpriced, failed, stopped, waiting }
}

async function begun(stage: Stage, id: string): Promise<void> {
  for (;;) {
    const { status } = await stage.server.api<{ status: string }>(`/runs/${id}`)
    if (status === 'running') return
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}
