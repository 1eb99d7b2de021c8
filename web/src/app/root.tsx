import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { PageBarEnd } from '@/components/layout/page-bar'
import { Shell } from '@/components/layout/shell'
import { useShortcuts } from '@/components/layout/use-shortcuts'
import { later } from '@/components/ui/later'
import { Notices } from '@/components/ui/notices'
import { RoomRail } from '@/features/rooms/components/room-rail'
import { useNewChat } from '@/features/rooms/model/use-new-chat'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import { type Command, useCommands } from '@/lib/commands'
import { askForTask, executeStore } from '@/lib/execute-request'
import { useStore } from '@/lib/store'
import { nextTheme, setTheme } from '@/lib/theme'
import { ConnectionBadge, ConnectionBanner } from './connection-state'
import { RailFoot } from './rail-foot'
import { RailNav } from './rail-nav'
import styles from './root.module.css'
// Not later: one types at once.
import { SearchPalette } from './search-palette'
import { useAttention } from './use-attention'
import { t } from './texts'

const ExecuteDialog = later(async () => (await import('@/features/agents/components/execute-dialog')).ExecuteDialog)
const ShortcutsDialog = later(async () => (await import('@/components/layout/shortcuts-dialog')).ShortcutsDialog)

export function Root(): ReactNode {
  const [open, setOpen] = useState<'palette' | 'shortcuts' | null>(null)
  useShortcuts()
  useAppCommands(setOpen)
  usePageCommands()
  useAgentCommands()
  useChatCommand()
  const waiting = useAttention()
  const task = useStore(executeStore)
  const close = (): void => setOpen(null)
  return (
    <PageBarEnd value={<ConnectionBadge />}>
      <Shell
        rail={
          <RoomRail
            foot={
              <div className={styles.end}>
                <RailNav waiting={waiting} />
                <RailFoot onPalette={() => setOpen('palette')} onShortcuts={() => setOpen('shortcuts')} />
              </div>
            }
          />
        }
        banner={<ConnectionBanner />}
      >
        <Outlet />
      </Shell>
      {open === 'palette' && <SearchPalette onClose={close} />}
      {open === 'shortcuts' && <ShortcutsDialog onClose={close} />}
      {task && <ExecuteDialog request={task} onClose={() => executeStore.set(null)} />}
      <Notices />
    </PageBarEnd>
  )
}

function useAppCommands(setOpen: (open: 'palette' | 'shortcuts') => void): void {
  const navigate = useNavigate()
  const rooms = useQuery(roomsQuery).data ?? []
  const { roomId } = useParams({ strict: false })
  const goTo = (id: string | undefined): void => {
    if (id) void navigate({ to: '/rooms/$roomId', params: { roomId: id } })
  }
  const step = (by: number): void => {
    const index = rooms.findIndex((room) => room.id === roomId)
    goTo(rooms[(index + by + rooms.length) % rooms.length]?.id)
  }
  useCommands([
    { id: 'palette', title: t.searchRoomsAndCommands, group: 'app', keys: 'mod+k', run: () => setOpen('palette') },
    { id: 'shortcuts', title: t.showKeyboardShortcuts, group: 'app', keys: '?', run: () => setOpen('shortcuts') },
    { id: 'next-room', title: t.nextRoom, group: 'app', keys: 'alt+ArrowDown', run: () => step(1) },
    { id: 'previous-room', title: t.previousRoom, group: 'app', keys: 'alt+ArrowUp', run: () => step(-1) },
    { id: 'theme', title: t.switchBetweenLightDarkAndSystem, group: 'app', run: () => setTheme(nextTheme()) },
    { id: 'api', title: t.openTheApiGuide, group: 'app', run: () => window.open('/docs', '_blank', 'noopener') },
  ])
  useCommands(rooms.map((room) => ({ id: `room-${room.id}`, title: room.name, detail: t.room, group: 'rooms', run: () => goTo(room.id) })))
}

function usePageCommands(): void {
  const navigate = useNavigate()
  useCommands([
    { id: 'approvals', title: t.approvals, detail: t.page, group: 'app', run: () => void navigate({ to: '/approvals' }) },
    { id: 'search', title: t.searchMessages, detail: t.page, group: 'app', keys: 'mod+shift+f', run: () => void navigate({ to: '/search' }) },
    { id: 'projects', title: t.projects, detail: t.page, group: 'app', run: () => void navigate({ to: '/projects' }) },
    { id: 'skills', title: t.skills, detail: t.page, group: 'app', run: () => void navigate({ to: '/skills' }) },
    { id: 'new-skill', title: t.writeASkill, group: 'app', run: () => void navigate({ to: '/skills/new' }) },
    { id: 'runs', title: t.runs, detail: t.page, group: 'app', run: () => void navigate({ to: '/runs' }) },
    { id: 'failed-runs', title: t.runsThatFailed, group: 'app', run: () => void navigate({ to: '/runs', search: { status: 'failed' } }) },
    { id: 'usage', title: t.usageAndCost, detail: t.page, group: 'app', run: () => void navigate({ to: '/usage' }) },
    { id: 'providers', title: t.providers, detail: t.page, group: 'app', run: () => void navigate({ to: '/settings/providers' }) },
    { id: 'security-log', title: t.securityLog, detail: t.page, group: 'app', run: () => void navigate({ to: '/settings/security-log' }) },
    { id: 'settings', title: t.settings, detail: t.tokensAppearanceAboutThisServer, group: 'app', run: () => void navigate({ to: '/settings' }) },
  ])
}

function useChatCommand(): void {
  const start = useNewChat()
  useCommands([{ id: 'new-chat', title: t.newChat, group: 'rooms', keys: 'mod+shift+o', run: () => start() }])
}

function useAgentCommands(): void {
  const navigate = useNavigate()
  const agents = useQuery(agentsQuery).data ?? []
  useCommands([
    { id: 'agents', title: t.agents, detail: t.page, group: 'agents', run: () => void navigate({ to: '/agents' }) },
    { id: 'new-agent', title: t.newAgent, group: 'agents', run: () => void navigate({ to: '/agents/new' }) },
    { id: 'mcp-servers', title: t.mcpServers, detail: t.page, group: 'agents', run: () => void navigate({ to: '/mcp-servers' }) },
    { id: 'run-task', title: t.runATask, group: 'agents', keys: 'x', run: () => askForTask() },
    ...agents.flatMap(({ id, name }): Command[] => [
      { id: `agent-${id}`, title: name, detail: t.agent, group: 'agents', run: () => void navigate({ to: '/agents/$agentId', params: { agentId: id } }) },
      { id: `task-${id}`, title: t.runATaskWith(name), group: 'agents', run: () => askForTask([id]) },
    ]),
  ])
}
