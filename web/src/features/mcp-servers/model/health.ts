import type { McpServer } from '@/lib/api/types'
import { duration } from '@/lib/format'

export interface Health {
  tone: 'good' | 'quiet' | 'wait' | 'bad'
  words: string
  detail: string | null
}

/** How a server is, in a few words, and what is behind it. */
export function healthOf({ disabled, shadowed, problem, status }: Pick<McpServer, 'disabled' | 'shadowed' | 'problem' | 'status'>): Health {
  if (shadowed) return { tone: 'quiet', words: 'not used', detail: 'A server of the same name in the server’s file overrides it.' }
  if (disabled) return { tone: 'quiet', words: 'off', detail: null }
  if (problem) return { tone: 'bad', words: 'not usable', detail: problem.message }
  switch (status?.state) {
    case 'ready':
      return { tone: 'good', words: toolWords(status.tools ?? null), detail: status.last_error ?? null }
    case 'starting':
      return { tone: 'wait', words: 'starting', detail: null }
    case 'resting': {
      const pause = status.retry_in_ms == null ? 'soon' : `in ${duration(status.retry_in_ms)}`
      return { tone: 'wait', words: `failed, retrying ${pause}`, detail: status.last_error ?? null }
    }
    case 'failed':
    case 'invalid':
      return { tone: 'bad', words: 'failed', detail: status.last_error ?? null }
    case 'disabled':
      return { tone: 'quiet', words: 'off', detail: null }
    default:
      return { tone: 'quiet', words: 'idle', detail: status?.last_error ?? null }
  }
}

function toolWords(tools: number | null): string {
  if (tools === null) return 'running'
  return tools === 1 ? 'running, 1 tool' : `running, ${tools} tools`
}

/** What it starts or where it is. */
export function addressOf({ command, args, url }: Pick<McpServer, 'command' | 'args' | 'url'>): string {
  return command == null ? (url ?? '') : [command, ...(args ?? [])].join(' ')
}
