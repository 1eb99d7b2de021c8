import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { projectFolderQuery } from '@/lib/api/queries'
import type { MentionedFolder } from './file-mentions'

/** The folder of the project that a message is about to name a file of; `look` says which one. */
export function useMentionedFiles(projectId: string | null): { files: MentionedFolder | null; look: (folder: string | null) => void } {
  const [folder, look] = useState<string | null>(null)
  const { data } = useQuery({ ...projectFolderQuery(projectId ?? '', folder ?? ''), enabled: projectId !== null && folder !== null, retry: false })
  return { files: data && folder !== null ? { folder, entries: data.entries } : null, look }
}
