import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Ellipsis, FileArchive, Settings2, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import { Menu } from '@/components/ui/menu'
import { ProblemNote } from '@/components/ui/problem-note'
import tabStyles from '@/components/ui/tabs.module.css'
import { ApiError } from '@/lib/api/client'
import { projectQuery } from '@/lib/api/queries'
import type { Project, RoomSummary } from '@/lib/api/types'
import { archiveAddress } from '../api/project-files'
import { type ProjectSearch, type Tab, tabs } from '../model/tabs'
import { useFreshFiles } from '../model/use-fresh-files'
import { CommandsTab } from './commands-tab'
import { DeleteProjectDialog } from './delete-project-dialog'
import { FilesTab } from './files-tab'
import { ProjectDialog } from './project-dialog'
import { RoomsTab } from './rooms-tab'
import { SandboxTab } from './sandbox-tab'
import { TierBadge } from './tier-badge'
import { t } from '../texts'

interface ProjectPageProps {
  projectId: string
  search: ProjectSearch
  /** Opens a new chat in the project; the app brings it, because rooms are another feature. */
  onNewRoom: () => void
}

export function ProjectPage({ projectId, search, onNewRoom }: ProjectPageProps): ReactNode {
  const { data: project, error, refetch } = useQuery(projectQuery(projectId))
  const rooms = useFreshFiles(projectId)
  const isMissing = error instanceof ApiError && (error.status === 404 || error.status === 400)
  const tab = search.tab ?? 'files'
  return (
    <PageBody
      title={project?.name ?? t.project}
      back={<Link to="/projects">{t.projects}</Link>}
      actions={project && <Actions project={project} rooms={rooms.length} />}
    >
      {isMissing && !project && (
        <EmptyState title={t.projectNotFound}>
          <Link to="/projects">{t.showAllProjects}</Link>
        </EmptyState>
      )}
      {error && !isMissing && <ProblemNote title={t.couldNotLoadTheProject} error={error} onRetry={() => void refetch()} />}
      {!project && !error && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
      {project && (
        <>
          <Tabs project={project} current={tab} rooms={rooms} />
          {tab === 'files' && <FilesTab key={project.id} project={project} file={search.file ?? null} />}
          {tab === 'commands' && <CommandsTab project={project} />}
          {tab === 'rooms' && <RoomsTab rooms={rooms} onNewRoom={onNewRoom} />}
          {tab === 'sandbox' && <SandboxTab project={project} />}
        </>
      )}
    </PageBody>
  )
}

const words: Record<Tab, string> = { get files() { return t.files }, get commands() { return t.commands }, get rooms() { return t.rooms }, get sandbox() { return t.sandbox } }

function Tabs({ project, current, rooms }: { project: Project; current: Tab; rooms: readonly RoomSummary[] }): ReactNode {
  return (
    <nav className={tabStyles.tabs} aria-label={t.partsOfTheProject}>
      {tabs.map((tab) => (
        <Link
          key={tab}
          to="/projects/$projectId"
          params={{ projectId: project.id }}
          search={tab === 'files' ? {} : { tab }}
          className={tabStyles.tab}
          activeOptions={{ exact: true, includeSearch: true }}
          aria-current={tab === current ? 'page' : undefined}
        >
          {words[tab]}
          {tab === 'rooms' && rooms.length > 0 && <span className={tabStyles.count}>{rooms.length}</span>}
        </Link>
      ))}
    </nav>
  )
}

function Actions({ project, rooms }: { project: Project; rooms: number }): ReactNode {
  const [dialog, setDialog] = useState<'settings' | 'delete' | null>(null)
  const close = (): void => setDialog(null)
  return (
    <>
      <TierBadge project={project} />
      <Menu
        label={t.projectActions}
        icon={<Ellipsis size={18} aria-hidden />}
        items={[
          { label: t.projectSettings, icon: <Settings2 size={15} aria-hidden />, onSelect: () => setDialog('settings') },
          { label: t.downloadAllFiles, icon: <FileArchive size={15} aria-hidden />, onSelect: () => location.assign(archiveAddress(project.id, '')) },
          { label: t.deleteProject, icon: <Trash2 size={15} aria-hidden />, isDangerous: true, onSelect: () => setDialog('delete') },
        ]}
      />
      {dialog === 'settings' && <ProjectDialog project={project} onClose={close} />}
      {dialog === 'delete' && <DeleteProjectDialog project={project} rooms={rooms} onClose={close} />}
    </>
  )
}
