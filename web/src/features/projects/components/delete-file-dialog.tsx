import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import { queryKeys } from '@/lib/api/query-keys'
import { deleteFile } from '../api/project-files'
import { nameOf } from '../model/paths'
import { t } from '../texts'

interface DeleteFileDialogProps {
  projectId: string
  path: string
  isFolder: boolean
  onClose: () => void
}

export function DeleteFileDialog({ projectId, path, isFolder, onClose }: DeleteFileDialogProps): ReactNode {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const remove = useMutation({
    mutationFn: () => deleteFile(projectId, path),
    onSuccess: async () => {
      onClose()
      await navigate({ to: '/projects/$projectId', params: { projectId }, search: {} })
      await queries.invalidateQueries({ queryKey: queryKeys.projects.files(projectId) })
    },
  })
  return (
    <ConfirmDialog title={t.deleteWith(nameOf(path))} keep={t.cancel} confirm={t.delete} isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>{isFolder ? t.theFolderIsDeleted : t.theFileIsDeleted}</p>
    </ConfirmDialog>
  )
}
