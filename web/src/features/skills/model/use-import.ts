import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ApiError, explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import { notify } from '@/lib/notices'
import { importFolder, importZip } from '../api/skill-files'
import { t } from '../texts'

export type Source = { archive: File } | { folder: string }

interface Import {
  isBusy: boolean
  error: unknown
  /** A name conflict: the import that failed, and the server's message. */
  taken: { source: Source; detail: string } | null
  start: (source: Source, replace?: boolean) => void
  forget: () => void
}

export function useImport(): Import {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { mutate, isPending, error, variables, reset } = useMutation({
    mutationFn: ({ source, replace }: { source: Source; replace: boolean }) =>
      'archive' in source ? importZip(source.archive, replace) : importFolder(source.folder, replace),
    onSuccess: async (skill, { replace }) => {
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
      notify(replace ? t.wasImportedAsVersion(skill.name, skill.version) : t.wasImported(skill.name))
      await navigate({ to: '/skills/$name', params: { name: skill.name } })
    },
  })
  const isTaken = error instanceof ApiError && error.status === 409 && variables?.replace === false
  return {
    isBusy: isPending,
    error: isTaken ? null : error,
    taken: isTaken ? { source: variables.source, detail: explain(error) } : null,
    start: (source, replace = false) => mutate({ source, replace }),
    forget: reset,
  }
}
