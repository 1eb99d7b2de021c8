import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { queryKeys } from '@/lib/api/query-keys'
import type { Finding } from '@/lib/api/types'
import { checkSkill } from '../api/skills'
import { type Draft, nameFinding, specOf } from './draft'

const pause = 350

export interface Check {
  findings: Finding[]
  /** The whole SKILL.md as a run would get it; null while it cannot be made. */
  preview: string | null
  error: unknown
}

/** Everything that is wrong with a draft as it is at this moment. */
export async function checkDraft(draft: Draft): Promise<Finding[]> {
  const { spec, findings } = specOf(draft)
  const wrongName = nameFinding(spec.name)
  if (wrongName || findings.length > 0) return [...(wrongName ? [wrongName] : []), ...findings]
  return (await checkSkill({ skill: spec })).findings
}

/** What the server thinks of a draft, asked for whenever typing rests. */
export function useCheck(draft: Draft): Check {
  const { spec, findings: own } = useMemo(() => specOf(draft), [draft])
  const wrongName = nameFinding(spec.name)
  // Without a name of its own it is checked under another, so that everything else is.
  const text = JSON.stringify(wrongName ? { ...spec, name: 'unnamed' } : spec)
  const settled = useSettled(text)
  const { data, error } = useQuery({
    queryKey: queryKeys.skills.check(settled),
    queryFn: ({ signal }) => checkSkill({ skill: JSON.parse(settled) as typeof spec }, signal),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    gcTime: 30_000,
  })
  const theirs = data?.findings ?? []
  return {
    findings: [...(wrongName ? [wrongName] : []), ...own, ...theirs],
    preview: wrongName ? null : (data?.preview ?? null),
    error,
  }
}

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), pause)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}
