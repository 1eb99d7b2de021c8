import type { RunError, RunStatus } from '@/lib/api/types'
import type { Since } from './run-filter'

export const statusWords: Record<RunStatus, string> = {
  queued: 'Queued',
  running: 'Running',
  waiting_for_approval: 'Waiting for approval',
  waiting_for_quota: 'Waiting for quota',
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
  [/^(over_?loaded|rate_limited)$/, 'Wait a moment, then retry in its room.'],
  [/^(authentication_failed|not_logged_in)$/, 'Log in with that program on the server’s machine, then retry in its room.'],
  [/^(program_missing|start_failed|start_timeout)$/, 'Settings lists the programs that this server has found, and what is missing.'],
  [/^model_not_found$/, 'Choose another model in the agent’s settings.'],
  [/^(skill_missing|mcp_server_missing|no_provider)$/, 'Remove what is missing from the agent’s settings.'],
  [/^agent_deleted$/, 'Ask again in the room: another agent can answer.'],
]

/** Advice for an error. Most messages contain it; this adds where to click. */
export function adviceFor({ code }: Pick<RunError, 'code'>): string {
  return byCode.find(([pattern]) => pattern.test(code))?.[1] ?? 'Press Retry below the answer in its room to ask again.'
}
