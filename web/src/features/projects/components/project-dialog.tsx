import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useId, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { Field } from '@/components/ui/field'
import { ProblemText } from '@/components/ui/problem-text'
import { queryKeys } from '@/lib/api/query-keys'
import type { Project } from '@/lib/api/types'
import { changeProject, createProject } from '../api/projects'
import { hostsFrom } from '../model/hosts'
import { t } from '../texts'
import styles from './project-dialog.module.css'

const exampleFolder = '/srv/site'
const exampleHosts = 'pypi.org\n*.npmjs.org'

/** Creates a project, or changes one. */
export function ProjectDialog({ project, onClose }: { project?: Project; onClose: () => void }): ReactNode {
  const [name, setName] = useState(project?.name ?? '')
  const [folder, setFolder] = useState('')
  const [hosts, setHosts] = useState(project?.network.allow.join('\n') ?? '')
  const queries = useQueryClient()
  const navigate = useNavigate()
  const hostsId = useId()
  const save = useMutation({
    mutationFn: () => {
      const network = { allow: hostsFrom(hosts) }
      return project ? changeProject(project.id, { name: name.trim(), network }) : createProject({ name: name.trim(), network, folder: folder.trim() || undefined })
    },
    onSuccess: async (saved) => {
      await queries.invalidateQueries({ queryKey: queryKeys.projects.all })
      onClose()
      if (!project) await navigate({ to: '/projects/$projectId', params: { projectId: saved.id } })
    },
  })
  return (
    <Dialog title={project ? t.projectSettings : t.newProject} onClose={onClose}>
      <form
        className={dialogs.body}
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate()
        }}
      >
        <Field label={t.name} value={name} required maxLength={120} autoComplete="off" dir="auto" onChange={(event) => setName(event.target.value)} />
        {!project && (
          <Field
            label={t.existingFolder}
            value={folder}
            autoComplete="off"
            spellCheck={false}
            placeholder={exampleFolder}
            hint={t.leaveEmptyForANewFolder}
            onChange={(event) => setFolder(event.target.value)}
          />
        )}
        <div className={styles.hosts}>
          <label htmlFor={hostsId}>{t.allowedHosts}</label>
          <textarea id={hostsId} aria-describedby={`${hostsId}-hint`} rows={3} value={hosts} spellCheck={false} placeholder={exampleHosts} onChange={(event) => setHosts(event.target.value)} />
          <p id={`${hostsId}-hint`}>{t.onePerLineNoneByDefault}</p>
        </div>
        <ProblemText error={save.error} />
        <div className={dialogs.actions}>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button type="submit" look="primary" isBusy={save.isPending} disabled={name.trim() === ''}>
            {project ? t.save : t.createProject}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
