/** Shapes of `/api/mcp-servers`, as far as these pages use them. */
export interface Fault {
  code: string
  message: string
}

export type Transport = 'stdio' | 'http' | 'sse'

/** What stands in `.mcp.json` for one server. Secrets come as `***`, and sent back so they are kept. */
export interface Entry {
  type: Transport
  command?: string
  args?: string[]
  env?: Record<string, string>
  cwd?: string
  url?: string
  headers?: Record<string, string>
  disabled?: boolean
  timeout?: number
  startupTimeout?: number
}

export interface Status {
  state: 'stopped' | 'starting' | 'ready' | 'resting' | 'failed' | 'disabled' | 'invalid'
  protocol_version: string | null
  server: { name: string; version: string; title?: string | null } | null
  tools: number | null
  quarantined: number
  calls: number
  failures: number
  restarts: number
  noise_lines: number
  uptime_ms: number | null
  retry_in_ms: number | null
  last_error: string | null
}

export interface McpServer extends Entry {
  name: string
  source: 'file' | 'database'
  editable: boolean
  shadowed: boolean
  variables: readonly { name: string; allowed: boolean; set: boolean }[]
  problem: Fault | null
  status: Status | null
  updated_at?: string
}

export interface Tool {
  name: string
  full_name: string
  title: string | null
  description: string | null
  input_schema: unknown
  output_schema: unknown
  annotations: { read_only?: boolean | null; destructive?: boolean | null; idempotent?: boolean | null; open_world?: boolean | null }
}

export interface Listing {
  instructions: string | null
  tools: readonly Tool[]
  quarantined: readonly { name: string | null; reason: string }[]
}

export interface TestReport {
  ok: boolean
  millis: number
  error: Fault | null
  listing: Listing | null
  stderr: string
  noise_lines: number
}

export type Content =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; media_type: string }
  | { type: 'resource'; uri: string; media_type?: string; text?: string; blob?: string }
  | { type: 'resource_link'; uri: string; name?: string; description?: string }
  | { type: 'other'; value: unknown }

export interface CallResult {
  content: readonly Content[]
  structured: unknown
  is_error: boolean
  notices: readonly string[]
  millis: number
}

export interface Logs {
  lines: readonly { at: string; source: 'server' | 'stdout' | 'manager'; text: string }[]
  stderr: string
}

export interface ImportOutcome {
  name: string
  outcome: 'created' | 'replaced' | 'unchanged' | 'refused'
  problem: Fault | null
}
