export interface DiagramColours {
  bg: string
  fg: string
  line: string
  accent: string
  muted: string
  surface: string
  border: string
}

export interface DiagramRequest {
  id: number
  source: string
  colours: DiagramColours
}

export interface DiagramAnswer {
  id: number
  svg: string | null
}

/** Longer ones are no picture that anyone could read. */
const longest = 20_000
const patience = 5_000

type Receive = (svg: string | null) => void

const waiting = new Map<number, Receive>()
let worker: Worker | null = null
let nextId = 1

function start(): Worker {
  const started = new Worker(new URL('./diagram-worker.ts', import.meta.url), { type: 'module' })
  started.addEventListener('message', ({ data }: MessageEvent<DiagramAnswer>) => settle(data.id, data.svg))
  started.addEventListener('error', giveUp)
  return started
}

function settle(id: number, svg: string | null): void {
  waiting.get(id)?.(svg)
  waiting.delete(id)
}

/** A diagram that never finishes would block all later ones: those are shown as text, and the worker is restarted. */
function giveUp(): void {
  worker?.terminate()
  worker = null
  for (const id of waiting.keys()) settle(id, null)
}

const keptPictures = 60
const kept = new Map<string, string>()

function keyOf(source: string, colours: DiagramColours): string {
  return `${Object.values(colours).join(' ')}\n${source}`
}

/** The picture that was drawn of this a while ago, if it is still at hand. */
export function drawnBefore(source: string, colours: DiagramColours): string | null {
  return kept.get(keyOf(source, colours)) ?? null
}

/**
 * The address of a picture of a diagram, or nothing where it cannot be drawn. The text of a model decides what is in
 * it, so it is only ever to be shown by `img`, where no script runs and no request goes out; never as part of the page.
 */
export async function drawDiagram(source: string, colours: DiagramColours): Promise<string | null> {
  const key = keyOf(source, colours)
  const known = kept.get(key)
  if (known !== undefined) return known
  const svg = source.length > longest ? null : await asked(source, colours)
  if (svg === null) return null
  const picture = `data:image/svg+xml,${encodeURIComponent(svg)}`
  kept.set(key, picture)
  if (kept.size > keptPictures) kept.delete(kept.keys().next().value ?? '')
  return picture
}

function asked(source: string, colours: DiagramColours): Promise<string | null> {
  const started = (worker ??= start())
  const id = nextId++
  return new Promise((resolve) => {
    const timer = setTimeout(giveUp, patience)
    waiting.set(id, (svg) => {
      clearTimeout(timer)
      resolve(svg)
    })
    started.postMessage({ id, source, colours } satisfies DiagramRequest)
  })
}
