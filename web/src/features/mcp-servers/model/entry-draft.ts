import type { McpServer, McpServerConfig, MergePatch } from '@/lib/api/types'
import { numberOf } from '@/lib/number-of'

export type Transport = 'stdio' | 'http' | 'sse'

/** One line of an environment or of headers. What is stored is never shown; left empty, it is kept. */
export interface Pair {
  key: string
  value: string
  isStored: boolean
}

/** A server as it is being written. */
export interface EntryDraft {
  name: string
  type: Transport
  command: string
  /** One argument a line. */
  args: string
  cwd: string
  url: string
  env: readonly Pair[]
  headers: readonly Pair[]
  timeout: string
  startupTimeout: string
}

const secret = '***'

export function draftOf(server: Partial<McpServer> | null): EntryDraft {
  return {
    name: server?.name ?? '',
    type: transportOf(server?.type),
    command: server?.command ?? '',
    args: (server?.args ?? []).join('\n'),
    cwd: server?.cwd ?? '',
    url: server?.url ?? '',
    env: pairsOf(server?.env),
    headers: pairsOf(server?.headers),
    timeout: String(server?.timeout ?? ''),
    startupTimeout: String(server?.startupTimeout ?? ''),
  }
}

/** What is sent: for a new one as it is; for a change, `null` clears what was left empty or belongs to another kind. */
export function entryOf(draft: EntryDraft): MergePatch<Omit<McpServerConfig, 'disabled'>> {
  const isProgram = draft.type === 'stdio'
  const args = draft.args.split('\n').filter((line) => line.trim() !== '')
  return {
    type: draft.type,
    command: isProgram ? draft.command.trim() : null,
    args: isProgram && args.length > 0 ? args : null,
    env: isProgram ? recordOf(draft.env) : null,
    cwd: isProgram ? draft.cwd.trim() || null : null,
    url: isProgram ? null : draft.url.trim(),
    headers: isProgram ? null : recordOf(draft.headers),
    timeout: numberOf(draft.timeout),
    startupTimeout: numberOf(draft.startupTimeout),
  }
}

export function withoutNulls<T extends object>(entry: MergePatch<T>): T {
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== null)) as T
}

/** The server always names the transport; stdio is only the choice for a new entry. */
function transportOf(type: string | null | undefined): Transport {
  return type === 'http' || type === 'sse' ? type : 'stdio'
}

function pairsOf(record: Record<string, string> | undefined): Pair[] {
  return Object.entries(record ?? {}).map(([key, value]) => ({ key, value: value === secret ? '' : value, isStored: value === secret }))
}

function recordOf(pairs: readonly Pair[]): Record<string, string> | null {
  const named = pairs.filter(({ key }) => key.trim() !== '')
  if (named.length === 0) return null
  return Object.fromEntries(named.map(({ key, value, isStored }) => [key.trim(), value === '' && isStored ? secret : value]))
}

/** `npx -y server` as it is typed in a terminal, taken apart into program and arguments. */
export function splitCommand(typed: string): { command: string; args: string[] } | null {
  const words = [...typed.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, bare]) => double ?? single ?? bare ?? '')
  const [command, ...args] = words
  return command === undefined || args.length === 0 ? null : { command, args }
}
