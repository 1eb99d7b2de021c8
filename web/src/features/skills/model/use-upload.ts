import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import { notify } from '@/lib/notices'
import { putFile } from '../api/skill-files'
import { skillQuery } from '../api/skills'
import { t } from '../texts'

interface NewFile {
  path: string
  file: File
  isProgram: boolean
}

interface Upload {
  progress: { name: string; done: number; all: number } | null
  failures: { name: string; reason: string }[]
  send: (files: readonly File[], folder: string, isProgram: boolean) => Promise<void>
}

/** Adds files to a skill one after the other: each is a version, and one that is refused does not hold up the rest. */
export function useUpload(name: string): Upload {
  const queries = useQueryClient()
  const [progress, setProgress] = useState<Upload['progress']>(null)
  const [failures, setFailures] = useState<Upload['failures']>([])
  const add = useMutation({
    mutationFn: ({ path, file, isProgram }: NewFile) => putFile(name, path, file, isProgram),
    onSuccess: (skill) => queries.setQueryData(skillQuery(name).queryKey, skill),
  })
  const send: Upload['send'] = async (files, folder, isProgram) => {
    const failed: Upload['failures'] = []
    setFailures([])
    for (const [done, file] of files.entries()) {
      const path = pathOf(folder, file.name)
      setProgress({ name: path, done, all: files.length })
      try {
        await add.mutateAsync({ path, file, isProgram })
      } catch (error) {
        failed.push({ name: path, reason: explain(error) })
      }
    }
    setProgress(null)
    setFailures(failed)
    const added = files.length - failed.length
    if (added > 0) notify(added === 1 ? t.theFileWasAdded : t.filesWereAdded(added))
    await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
  }
  return { progress, failures, send }
}

export function pathOf(folder: string, name: string): string {
  const place = folder.trim().replace(/^\/+|\/+$/g, '')
  return place === '' ? name : `${place}/${name}`
}
