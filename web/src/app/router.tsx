import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Landing } from '@/features/rooms/components/landing'
import { RoomPage } from '@/features/rooms/components/room-page'
import { readProjectSearch } from '@/features/projects/model/tabs'
import { readFilter } from '@/features/runs/model/run-filter'
import { readSearchFilter } from '@/features/search/model/search-filter'
import { readAuditFilter } from '@/features/settings/model/audit-filter'
import { nextPage } from '@/features/sign-in/model/sign-in-link'
import { readTab } from '@/features/skills/model/tabs'
import { readUsageFilter } from '@/features/usage/model/usage-filter'
import { NotFound } from './not-found'
import { Root } from './root'
import { readAgentView, readMcpServerView, readNewAgent, readRoomSearch } from './route-search'

const rootRoute = createRootRoute({ component: Root, notFoundComponent: NotFound })

const landingRoute = createRoute({ getParentRoute: () => rootRoute, path: '/', component: Landing })

const roomRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/rooms/$roomId',
  validateSearch: readRoomSearch,
  component: function Room(): ReactNode {
    const { roomId } = roomRoute.useParams()
    const { m } = roomRoute.useSearch()
    return <RoomPage roomId={roomId} target={m ?? null} />
  },
})

// Each further page is loaded when first visited.
const RunsPage = lazyRouteComponent(() => import('@/features/runs/components/runs-page'), 'RunsPage')
const RunPage = lazyRouteComponent(() => import('@/features/runs/components/run-page'), 'RunPage')
const SkillsPage = lazyRouteComponent(() => import('@/features/skills/components/skills-page'), 'SkillsPage')
const NewSkillPage = lazyRouteComponent(() => import('@/features/skills/components/new-skill-page'), 'NewSkillPage')
const SkillPage = lazyRouteComponent(() => import('@/features/skills/components/skill-page'), 'SkillPage')
const UsagePage = lazyRouteComponent(() => import('@/features/usage/components/usage-page'), 'UsagePage')
const SettingsPage = lazyRouteComponent(() => import('@/features/settings/components/settings-page'), 'SettingsPage')
const SecurityLogPage = lazyRouteComponent(() => import('@/features/settings/components/security-log-page'), 'SecurityLogPage')
const SearchPage = lazyRouteComponent(() => import('@/features/search/components/search-page'), 'SearchPage')
const ApprovalsPage = lazyRouteComponent(() => import('@/features/rooms/components/approvals-page'), 'ApprovalsPage')

const approvalsRoute = createRoute({ getParentRoute: () => rootRoute, path: '/approvals', component: ApprovalsPage })

const runsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/runs',
  validateSearch: readFilter,
  component: function Runs(): ReactNode {
    return <RunsPage filter={runsRoute.useSearch()} />
  },
})

const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/runs/$runId',
  component: function Run(): ReactNode {
    const { runId } = runRoute.useParams()
    return <RunPage key={runId} runId={runId} />
  },
})

const skillsRoute = createRoute({ getParentRoute: () => rootRoute, path: '/skills', component: SkillsPage })
const newSkillRoute = createRoute({ getParentRoute: () => rootRoute, path: '/skills/new', component: NewSkillPage })

const skillRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/skills/$name',
  validateSearch: readTab,
  component: function Skill(): ReactNode {
    const { name } = skillRoute.useParams()
    const { tab } = skillRoute.useSearch()
    return <SkillPage key={name} name={name} tab={tab ?? 'edit'} />
  },
})

const searchRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/search',
  validateSearch: readSearchFilter,
  component: function Search(): ReactNode {
    return <SearchPage filter={searchRoute.useSearch()} />
  },
})

const usageRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/usage',
  validateSearch: readUsageFilter,
  component: function Usage(): ReactNode {
    return <UsagePage filter={usageRoute.useSearch()} />
  },
})

/** Seen by somebody who is signed in: they go on to where they wanted to. */
const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-in',
  validateSearch: ({ next }: Record<string, unknown>): { next?: string } => (typeof next === 'string' ? { next } : {}),
  beforeLoad: ({ search }) => {
    throw redirect({ href: nextPage(search.next, location.origin), replace: true })
  },
})

const settingsRoute = createRoute({ getParentRoute: () => rootRoute, path: '/settings', component: SettingsPage })

const providersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/providers',
  component: lazyRouteComponent(() => import('@/features/providers/components/providers-page'), 'ProvidersPage'),
})

const securityLogRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/security-log',
  validateSearch: readAuditFilter,
  component: function SecurityLog(): ReactNode {
    return <SecurityLogPage filter={securityLogRoute.useSearch()} />
  },
})

const projectPages = (): Promise<typeof import('./project-pages')> => import('./project-pages')

const projectsRoute = createRoute({ getParentRoute: () => rootRoute, path: '/projects', component: lazyRouteComponent(projectPages, 'ProjectsPage') })

const projectRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/projects/$projectId',
  validateSearch: readProjectSearch,
  component: lazyRouteComponent(projectPages, 'ProjectRoute'),
})

const agentPages = (): Promise<typeof import('./agent-pages')> => import('./agent-pages')

const agentsRoute = createRoute({ getParentRoute: () => rootRoute, path: '/agents', component: lazyRouteComponent(agentPages, 'AgentsPage') })

const newAgentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/agents/new',
  validateSearch: readNewAgent,
  component: lazyRouteComponent(agentPages, 'NewAgentRoute'),
})

const agentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/agents/$agentId',
  validateSearch: readAgentView,
  component: lazyRouteComponent(agentPages, 'AgentRoute'),
})

const mcpPages = (): Promise<typeof import('./mcp-server-pages')> => import('./mcp-server-pages')

const mcpServersRoute = createRoute({ getParentRoute: () => rootRoute, path: '/mcp-servers', component: lazyRouteComponent(mcpPages, 'McpServersPage') })
const newMcpServerRoute = createRoute({ getParentRoute: () => rootRoute, path: '/mcp-servers/new', component: lazyRouteComponent(mcpPages, 'NewMcpServerPage') })

const mcpServerRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/mcp-servers/$name',
  validateSearch: readMcpServerView,
  component: lazyRouteComponent(mcpPages, 'McpServerRoute'),
})

const pages = [
  landingRoute,
  roomRoute,
  agentsRoute,
  newAgentRoute,
  agentRoute,
  skillsRoute,
  newSkillRoute,
  skillRoute,
  mcpServersRoute,
  newMcpServerRoute,
  mcpServerRoute,
  projectsRoute,
  projectRoute,
  searchRoute,
  approvalsRoute,
  runsRoute,
  runRoute,
  usageRoute,
  settingsRoute,
  providersRoute,
  securityLogRoute,
  signInRoute,
] as const
export const router = createRouter({ routeTree: rootRoute.addChildren(pages) })

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
