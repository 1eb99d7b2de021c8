import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError, explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { Skill } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { useAction } from '@/lib/use-action'
import { importFolder, importZip } from '../api/skill-files'

export type Source = { archive: File } | { folder: string }

interface Import {
  isBusy: boolean
  problem: unknown
  /** A name conflict: the import that failed, and the server's message. */
  taken: { source: Source; detail: string } | null
  start: (source: Source, replace?: boolean) => Promise<void>
  forget: () => void
}

export function useImport(): Import {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { isBusy, problem, run } = useAction()
  const [taken, setTaken] = useState<Import['taken']>(null)

  const start = async (source: Source, replace = false): Promise<void> => {
    setTaken(null)
    await run(async () => {
      let skill: Skill
      try {
        skill = await ('archive' in source ? importZip(source.archive, replace) : importFolder(source.folder, replace))
      } catch (error) {
        if (replace || !(error instanceof ApiError) || error.status !== 409) throw error
        return setTaken({ source, detail: explain(error) })
      }
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
      notify(replace ? `${skill.name} was imported as version ${skill.version}.` : `${skill.name} was imported.`)
      await navigate({ to: '/skills/$name', params: { name: skill.name } })
    })
  }
  return { isBusy, problem, taken, start, forget: () => setTaken(null) }
}
