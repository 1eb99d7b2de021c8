import type { RunError, RunStatus } from '@/lib/api/types'
import type { Since } from './run-filter'
import { t } from '../texts'

export const statusWords: Record<RunStatus, string> = {
  get queued() { return t.queued },
  get running() { return t.running },
  get waiting_for_approval() { return t.waitingForApproval },
  get waiting_for_quota() { return t.waitingForQuota },
  get completed() { return t.completed },
  get failed() { return t.failed },
  get cancelled() { return t.stopped },
  get interrupted() { return t.interrupted },
}

export const sinceWords: Record<Since, string> = {
  get hour() { return t.lastHour },
  get day() { return t.last24Hours },
  get week() { return t.last7Days },
  get month() { return t.last30Days },
}

const byCode = (): [pattern: RegExp, advice: string][] => [
  [/^limit_/, t.raiseThisLimitInTheAgentsSettings],
  [/^(over_?loaded|rate_limited)$/, t.waitAMomentThenRetryInIts],
  [/^(authentication_failed|not_logged_in)$/, t.logInWithThatProgramOnThe],
  [/^(program_missing|start_failed|start_timeout)$/, t.settingsListsTheProgramsThatThisServer],
  [/^model_not_found$/, t.chooseAnotherModelInTheAgentsSettings],
  [/^(skill_missing|mcp_server_missing|no_provider)$/, t.removeWhatIsMissingFromTheAgents],
  [/^agent_deleted$/, t.askAgainInTheRoomAnotherAgent],
]

/** Advice for an error. Most messages contain it; this adds where to click. */
export function adviceFor({ code }: Pick<RunError, 'code'>): string {
  return byCode().find(([pattern]) => pattern.test(code))?.[1] ?? t.pressRetryBelowTheAnswerInIts
}
