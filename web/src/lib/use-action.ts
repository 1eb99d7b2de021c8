import { useState } from 'react'
import { explain } from './api/client'

interface Action {
  isBusy: boolean
  problem: unknown
  /** The problem in words, or null. */
  reason: string | null
  /** Does it once at a time; what goes wrong is kept in `problem`. True when it went well. */
  run: (deed: () => Promise<unknown>) => Promise<boolean>
}

export function useAction(): Action {
  const [isBusy, setIsBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const run = async (deed: () => Promise<unknown>): Promise<boolean> => {
    setIsBusy(true)
    setProblem(null)
    try {
      await deed()
      return true
    } catch (error) {
      setProblem(error)
      return false
    } finally {
      setIsBusy(false)
    }
  }
  return { isBusy, problem, reason: problem == null ? null : explain(problem), run }
}
