import { useMutation } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { explain } from '@/lib/api/client'
import { notify } from '@/lib/notices'
import { answerApproval, readRun, stopRun } from '../api/agent-commands'
import { execute } from '../api/execute'
import { type Execution, begun, ended, fold, withAnswered, withRecord } from './execution'
import { t } from '../texts'

/** How often a run whose stream broke is looked at again. */
const lookAgainMs = 2000

export interface Executing {
  execution: Execution | null
  isStopping: boolean
  isAnswering: boolean
  start: (agentId: string, task: string) => void
  stop: () => void
  answer: (approvalId: string, decision: 'allow' | 'deny') => void
  clear: () => void
}

interface ApprovalAnswer {
  runId: string
  approvalId: string
  decision: 'allow' | 'deny'
}

/** One task at a time. Leaving does not stop it: it goes on in its room. */
export function useExecution(): Executing {
  const [execution, setExecution] = useState<Execution | null>(null)
  const current = useRef<AbortController | null>(null)
  useEffect(() => () => current.current?.abort(), [])

  const start = useCallback((agentId: string, task: string): void => {
    current.current?.abort()
    const control = new AbortController()
    current.current = control
    setExecution(begun)
    void follow(agentId, task, control.signal, setExecution)
  }, [])

  const stop = useMutation({
    mutationFn: stopRun,
    onError: (error) => notify(t.itWasNotStopped(explain(error)), 'problem'),
  })
  const answer = useMutation({
    mutationFn: ({ runId, approvalId, decision }: ApprovalAnswer) => answerApproval(runId, approvalId, decision),
    onSuccess: (_, { approvalId }) => setExecution((now) => now && withAnswered(now, approvalId)),
    onError: (error) => notify(explain(error), 'problem'),
  })
  const runId = execution?.runId

  return {
    execution,
    isStopping: stop.isPending && stop.variables === runId,
    isAnswering: answer.isPending,
    start,
    stop: () => runId && stop.mutate(runId),
    answer: (approvalId, decision) => runId && answer.mutate({ runId, approvalId, decision }),
    clear: () => {
      current.current?.abort()
      setExecution(null)
    },
  }
}

async function follow(agentId: string, task: string, signal: AbortSignal, show: (execution: Execution) => void): Promise<void> {
  let now = begun
  // Words may come faster than pictures are drawn; each picture shows all that has come by then.
  let isDue = false
  const put = (next: Execution): void => {
    now = next
    if (isDue) return
    isDue = true
    requestAnimationFrame(() => {
      isDue = false
      if (!signal.aborted) show(now)
    })
  }
  try {
    for await (const event of execute(agentId, task, signal)) put(fold(now, event))
    if (!now.ending) put(ended(now, broken))
  } catch (error) {
    if (signal.aborted) return
    put(ended(now, now.runId ? broken : { kind: 'failed', text: explain(error) }))
  }
  if (now.runId) await complete(now.runId, signal, () => now, put)
}

const broken = { kind: 'lost', get text() { return t.theConnectionBrokeTheTaskGoesOn } } as const

/** The figures where the stream did not bring them, and the end where it did not come to one. */
async function complete(runId: string, signal: AbortSignal, get: () => Execution, put: (execution: Execution) => void): Promise<void> {
  while (!signal.aborted && (get().metrics === null || get().ending?.kind === 'lost')) {
    const run = await readRun(runId).catch(() => null)
    if (run) put(withRecord(get(), run))
    if (get().metrics !== null && get().ending?.kind !== 'lost') return
    await new Promise((resolve) => setTimeout(resolve, lookAgainMs))
  }
}
