import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import { skillsQuery } from '@/lib/api/queries'
import type { Skill } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { deleteSkill, skillQuery } from '../api/skills'
import { t } from '../texts'

export function DeleteSkillDialog({ skill, onClose }: { skill: Skill; onClose: () => void }): ReactNode {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const remove = useMutation({
    mutationFn: () => deleteSkill(skill.name),
    onSuccess: async () => {
      // Unsaved changes have no skill any more that they could be saved to.
      await navigate({ to: '/skills', ignoreBlocker: true })
      notify(t.wasDeleted(skill.name))
      queries.removeQueries(skillQuery(skill.name))
      await queries.invalidateQueries(skillsQuery)
    },
  })
  return (
    <ConfirmDialog title={t.delete(skill.display_name ?? skill.name)} keep={t.cancel} confirm={t.deleteSkill} isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>{t.itsItsFilesAndItsTrainingHistory(skill.version === 1 ? t.versionWord : t.versions(skill.version))}</p>
    </ConfirmDialog>
  )
}
