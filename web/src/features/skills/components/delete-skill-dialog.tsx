import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import { skillsQuery } from '@/lib/api/queries'
import type { Skill } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { deleteSkill, skillQuery } from '../api/skills'

export function DeleteSkillDialog({ skill, onClose }: { skill: Skill; onClose: () => void }): ReactNode {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const remove = useMutation({
    mutationFn: () => deleteSkill(skill.name),
    onSuccess: async () => {
      // Unsaved changes have no skill any more that they could be saved to.
      await navigate({ to: '/skills', ignoreBlocker: true })
      notify(`${skill.name} was deleted.`)
      queries.removeQueries(skillQuery(skill.name))
      await queries.invalidateQueries(skillsQuery)
    },
  })
  return (
    <ConfirmDialog title={`Delete ${skill.display_name ?? skill.name}?`} keep="Cancel" confirm="Delete skill" isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>
        Its {skill.version === 1 ? 'version' : `${skill.version} versions`}, its files and its training history go with it. This cannot be undone; an export
        keeps a copy. Runs of agents that name it fail until it is taken out of their settings.
      </p>
    </ConfirmDialog>
  )
}
