import type { RunError, RunStatus } from '@/lib/api/types'
import type { Since } from './run-filter'

export const statusWords: Record<RunStatus, string> = {
  queued: 'Queued',
  running: 'Running',
  waiting_for_approval: 'Waits for you',
  waiting_for_quota: 'Waits for quota',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Stopped',
  interrupted: 'Interrupted',
}

export const sinceWords: Record<Since, string> = {
  hour: 'Last hour',
  day: 'Last 24 hours',
  week: 'Last 7 days',
  month: 'Last 30 days',
}

const byCode: [pattern: RegExp, advice: string][] = [
  [/^limit_/, 'Raise this limit in the agent’s settings, or ask for less at once.'],
  [/^(over_?loaded|rate_limited)$/, 'Wait a little, then press Retry below the answer in its room.'],
  [/^(authentication_failed|not_logged_in)$/, 'Log in with that program on the server’s machine, then press Retry in the room.'],
  [/^(program_missing|start_failed|start_timeout)$/, 'Settings shows what this server has found of its programs and what is missing.'],
  [/^model_not_found$/, 'Choose another model in the agent’s settings.'],
  [/^(skill_missing|mcp_server_missing|no_provider)$/, 'Change the agent so that it names only what this server has.'],
  [/^agent_deleted$/, 'Another agent can answer: ask again in the room.'],
]

/** Advice for an error. Most messages contain it; this adds where to click. */
export function adviceFor({ code }: Pick<RunError, 'code'>): string {
  return byCode.find(([pattern]) => pattern.test(code))?.[1] ?? 'Press Retry below the answer in its room to ask again.'
}
