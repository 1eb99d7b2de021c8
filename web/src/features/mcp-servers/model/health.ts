import type { McpServer } from '@/lib/api/types'
import { duration } from '@/lib/format'
import { t } from '../texts'

export interface Health {
  tone: 'good' | 'quiet' | 'wait' | 'bad'
  words: string
  detail: string | null
}

/** How a server is, in a few words, and what is behind it. */
export function healthOf({ disabled, shadowed, problem, status }: Pick<McpServer, 'disabled' | 'shadowed' | 'problem' | 'status'>): Health {
  if (shadowed) return { tone: 'quiet', words: t.notUsed, detail: t.aServerOfTheSameNameIn }
  if (disabled) return { tone: 'quiet', words: t.off, detail: null }
  if (problem) return { tone: 'bad', words: t.notUsable, detail: problem.message }
  switch (status?.state) {
    case 'ready':
      return { tone: 'good', words: toolWords(status.tools ?? null), detail: status.last_error ?? null }
    case t.starting:
      return { tone: 'wait', words: t.starting, detail: null }
    case 'resting': {
      const pause = status.retry_in_ms == null ? t.soon : t.in(duration(status.retry_in_ms))
      return { tone: 'wait', words: t.failedRetrying(pause), detail: status.last_error ?? null }
    }
    case t.failed:
    case 'invalid':
      return { tone: 'bad', words: t.failed, detail: status.last_error ?? null }
    case 'disabled':
      return { tone: 'quiet', words: t.off, detail: null }
    default:
      return { tone: 'quiet', words: t.idle, detail: status?.last_error ?? null }
  }
}

function toolWords(tools: number | null): string {
  if (tools === null) return 'running'
  return tools === 1 ? t.running1Tool : t.runningTools(tools)
}

/** What it starts or where it is. */
export function addressOf({ command, args, url }: Pick<McpServer, 'command' | 'args' | 'url'>): string {
  return command == null ? (url ?? '') : [command, ...(args ?? [])].join(' ')
}
