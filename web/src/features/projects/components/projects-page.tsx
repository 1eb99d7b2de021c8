import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { Button } from '@/components/ui/button'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { projectsQuery, roomsQuery } from '@/lib/api/queries'
import type { Project } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { ProjectDialog } from './project-dialog'
import { TierBadge } from './tier-badge'
import { t } from '../texts'
import styles from './projects-page.module.css'

export function ProjectsPage(): ReactNode {
  const { data: projects, error, refetch } = useQuery(projectsQuery)
  const [isCreating, setIsCreating] = useState(false)
  const create = (
    <Button look="primary" onClick={() => setIsCreating(true)}>
      <Plus size={15} aria-hidden />
      {t.newProject}
    </Button>
  )
  return (
    <PageBody title={t.projects} actions={create}>
      <p className={styles.lead}>{t.aProjectIsAFolder}</p>
      {error && <ProblemNote title={t.couldNotLoadProjects} error={error} onRetry={() => void refetch()} />}
      {!projects && !error && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
      {projects?.length === 0 && <EmptyState title={t.noProjectsYet} detail={t.createOneAddFilesAndChat} />}
      {projects && projects.length > 0 && (
        <ul className={styles.list} aria-label={t.projects}>
          {projects.map((project) => (
            <Row key={project.id} project={project} />
          ))}
        </ul>
      )}
      {isCreating && <ProjectDialog onClose={() => setIsCreating(false)} />}
    </PageBody>
  )
}

function Row({ project }: { project: Project }): ReactNode {
  const rooms = (useQuery(roomsQuery).data ?? []).filter((room) => room.project_id === project.id).length
  return (
    <li className={styles.project}>
      <div className={styles.what}>
        <Link to="/projects/$projectId" params={{ projectId: project.id }} className={styles.name} dir="auto">
          {project.name}
        </Link>
        {project.folder && <code className={styles.folder}>{project.folder}</code>}
      </div>
      <TierBadge project={project} />
      <span className={styles.figures}>
        {t.roomCount(rooms)}
        {' · '}
        <time dateTime={project.updated_at} title={fullTime(project.updated_at)}>
          {shortTime(project.updated_at)}
        </time>
      </span>
    </li>
  )
}
