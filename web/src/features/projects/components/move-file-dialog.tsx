import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { Field } from '@/components/ui/field'
import { ProblemText } from '@/components/ui/problem-text'
import { queryKeys } from '@/lib/api/query-keys'
import { moveFile } from '../api/project-files'
import { nameOf } from '../model/paths'
import { t } from '../texts'

export function MoveFileDialog({ projectId, path, onClose }: { projectId: string; path: string; onClose: () => void }): ReactNode {
  const [to, setTo] = useState(path)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const move = useMutation({
    mutationFn: () => moveFile(projectId, path, to.trim()),
    onSuccess: async () => {
      onClose()
      // What was shown is not there any more.
      await navigate({ to: '/projects/$projectId', params: { projectId }, search: {} })
      await queries.invalidateQueries({ queryKey: queryKeys.projects.files(projectId) })
    },
  })
  return (
    <Dialog title={t.moveWith(nameOf(path))} onClose={onClose}>
      <form
        className={dialogs.body}
        onSubmit={(event) => {
          event.preventDefault()
          move.mutate()
        }}
      >
        <Field label={t.newPath} value={to} required spellCheck={false} autoComplete="off" hint={t.foldersAreCreated} onChange={(event) => setTo(event.target.value)} />
        <ProblemText error={move.error} />
        <div className={dialogs.actions}>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button type="submit" look="primary" isBusy={move.isPending} disabled={to.trim() === '' || to.trim() === path}>
            {t.move}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
