import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import { roomsQuery } from '@/lib/api/queries'
import { queryKeys } from '@/lib/api/query-keys'
import type { Project } from '@/lib/api/types'
import { deleteProject } from '../api/projects'
import { t } from '../texts'

export function DeleteProjectDialog({ project, rooms, onClose }: { project: Project; rooms: number; onClose: () => void }): ReactNode {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const remove = useMutation({
    mutationFn: () => deleteProject(project.id),
    onSuccess: async () => {
      await navigate({ to: '/projects' })
      await Promise.all([queries.invalidateQueries({ queryKey: queryKeys.projects.all }), queries.invalidateQueries(roomsQuery)])
    },
  })
  return (
    <ConfirmDialog title={t.deleteWith(project.name)} keep={t.cancel} confirm={t.deleteProject} isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>{t.itsRoomsAreDeletedToo(rooms)}</p>
      <p>{project.folder ? t.theFolderStays(project.folder) : t.itsFilesAreErased}</p>
    </ConfirmDialog>
  )
}
