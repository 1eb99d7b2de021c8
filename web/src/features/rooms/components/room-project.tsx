import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { FolderOpen } from 'lucide-react'
import type { ReactNode } from 'react'
import quietLink from '@/components/ui/quiet-link.module.css'
import { projectQuery } from '@/lib/api/queries'
import { t } from '../texts'
import styles from './room-project.module.css'

/** The project in whose folder the agents of a room work. */
export function RoomProject({ projectId }: { projectId: string }): ReactNode {
  const project = useQuery(projectQuery(projectId)).data
  if (!project) return null
  return (
    <Link to="/projects/$projectId" params={{ projectId }} className={quietLink.link} title={t.filesOfTheProject}>
      <FolderOpen size={15} aria-hidden />
      <span className={styles.name} dir="auto">{project.name}</span>
    </Link>
  )
}

/** Said at the top of the room where programs of agents are not fully kept apart. */
export function WeakSandboxNote({ projectId }: { projectId: string }): ReactNode {
  const project = useQuery(projectQuery(projectId)).data
  const tier = project?.isolation?.tier
  if (!project || tier === 'native' || tier === 'docker') return null
  return (
    <p className={styles.warning} role="note">
      {tier === 'landlock' ? t.onlyFilesAreProtectedHere : tier === 'none' ? t.nothingIsIsolatedHere : t.noSandboxWorksHere}{' '}
      <Link to="/projects/$projectId" params={{ projectId }} search={{ tab: 'sandbox' }}>
        {t.whatThisMeans}
      </Link>
    </p>
  )
}
