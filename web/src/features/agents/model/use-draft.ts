import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type RefObject, useEffect, useMemo, useRef, useState } from 'react'
import { agentsQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import { changeAgent, createAgent } from '../api/agent-commands'
import { agentQuery } from '../api/agent-queries'
import { type Draft, draftOf, isChanged, patchOf, rebase, specOf } from './draft'
import { type FormProblem, problemOf } from './problems'

interface Drafting {
  draft: Draft
  change: (changes: Partial<Draft>) => void
  discard: () => void
  /** What is on the screen when it is called, not when it was handed out. */
  save: RefObject<() => Promise<Agent | null>>
  problem: FormProblem | null
  isSaving: boolean
  isChanged: boolean
}

/** An agent while it is written: against what is saved, and against what others save. */
export function useDraft(agent: Agent | null, initial: Draft): Drafting {
  const [base, setBase] = useState(initial)
  const [draft, setDraft] = useState(initial)
  const [version, setVersion] = useState(agent?.updated_at)
  const queries = useQueryClient()

  if (agent && agent.updated_at !== version) {
    const fresh = draftOf(agent)
    setVersion(agent.updated_at)
    setDraft(rebase(base, draft, fresh))
    setBase(fresh)
  }

  const isDifferent = isChanged(base, draft)

  const { mutateAsync, isPending, error, reset } = useMutation({
    mutationFn: (sent: Draft) => (agent ? changeAgent(agent.id, patchOf(base, sent)) : createAgent(specOf(sent))),
    onSuccess: (saved, sent) => {
      const fresh = draftOf(saved)
      setBase(fresh)
      setDraft((now) => rebase(sent, now, fresh))
      setVersion(saved.updated_at)
      queries.setQueryData(agentQuery(saved.id).queryKey, saved)
      void queries.invalidateQueries(agentsQuery)
    },
  })
  // The form moves the focus to a new problem, so it must be the same object until the next attempt.
  const problem = useMemo(() => (error ? problemOf(error) : null), [error])

  const saveNow = async (): Promise<Agent | null> => {
    if (isPending) return null
    if (agent && !isDifferent) return agent
    return mutateAsync(draft).catch(() => null)
  }

  const save = useRef(saveNow)
  useEffect(() => {
    save.current = saveNow
  })

  return {
    draft,
    change: (changes) => setDraft((before) => ({ ...before, ...changes })),
    discard: () => {
      setDraft(base)
      reset()
    },
    save,
    problem,
    isSaving: isPending,
    isChanged: isDifferent,
  }
}
