export interface Token {
  text: string
  color: string | undefined
}

export interface HighlightRequest {
  id: number
  code: string
  language: string
}

export interface HighlightAnswer {
  id: number
  lines: Token[][] | null
}

type Receive = (lines: Token[][] | null) => void

const waiting = new Map<number, Receive>()
let worker: Worker | null = null
let nextId = 1

function start(): Worker {
  const started = new Worker(new URL('./highlight-worker.ts', import.meta.url), { type: 'module' })
  started.addEventListener('message', ({ data }: MessageEvent<HighlightAnswer>) => {
    waiting.get(data.id)?.(data.lines)
    waiting.delete(data.id)
  })
  return started
}

/** The code as lines of coloured pieces, or nothing where the language is not known. The worker starts with the first. */
export function highlight(code: string, language: string): Promise<Token[][] | null> {
  const started = (worker ??= start())
  const id = nextId++
  return new Promise((resolve) => {
    waiting.set(id, resolve)
    started.postMessage({ id, code, language } satisfies HighlightRequest)
  })
}
