import { createStore } from './store'

/** The agent for a task; unset if it should be chosen. */
export interface ExecuteRequest {
  agentIds: readonly string[]
}

/** The dialog for a task can be asked for from anywhere; the app shows it. */
export const executeStore = createStore<ExecuteRequest | null>(null)

export function askForTask(agentIds: readonly string[] = []): void {
  executeStore.set({ agentIds })
}
