import { getRouteApi } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ProjectPage } from '@/features/projects/components/project-page'
import { useNewChat } from '@/features/rooms/model/use-new-chat'

export { ProjectsPage } from '@/features/projects/components/projects-page'

const one = getRouteApi('/projects/$projectId')

// The projects feature does not know rooms: the app combines them.
export function ProjectRoute(): ReactNode {
  const { projectId } = one.useParams()
  const start = useNewChat()
  return <ProjectPage key={projectId} projectId={projectId} search={one.useSearch()} onNewRoom={() => start(projectId)} />
}
