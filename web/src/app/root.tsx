import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, Suspense, lazy, useState } from 'react'
import { PageBarEnd } from '@/components/layout/page-bar'
import { Palette } from '@/components/layout/palette'
import { Shell } from '@/components/layout/shell'
import { ShortcutsDialog } from '@/components/layout/shortcuts-dialog'
import { useShortcuts } from '@/components/layout/use-shortcuts'
import { Notices } from '@/components/ui/notices'
import { RoomRail } from '@/features/rooms/components/room-rail'
import { useNewChat } from '@/features/rooms/model/use-new-chat'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import { useCommands } from '@/lib/commands'
import { askForTask, executeStore } from '@/lib/execute-request'
import { useStore } from '@/lib/store'
import { nextTheme, setTheme } from '@/lib/theme'
import { ConnectionBadge, ConnectionBanner } from './connection-state'
import { RailFoot } from './rail-foot'
import { RailNav } from './rail-nav'
import styles from './root.module.css'
import { useAttention } from './use-attention'

const ExecuteDialog = lazy(async () => ({ default: (await import('@/features/agents/components/execute-dialog')).ExecuteDialog }))

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
      {open === 'palette' && <Palette onClose={close} />}
      {open === 'shortcuts' && <ShortcutsDialog onClose={close} />}
      {task && (
        <Suspense>
          <ExecuteDialog request={task} onClose={() => executeStore.set(null)} />
        </Suspense>
      )}
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
    { id: 'palette', title: 'Search rooms and commands', group: 'Greenroom', keys: 'mod+k', run: () => setOpen('palette') },
    { id: 'shortcuts', title: 'Show keyboard shortcuts', group: 'Greenroom', keys: '?', run: () => setOpen('shortcuts') },
    { id: 'next-room', title: 'Next room', group: 'Greenroom', keys: 'alt+ArrowDown', run: () => step(1) },
    { id: 'previous-room', title: 'Previous room', group: 'Greenroom', keys: 'alt+ArrowUp', run: () => step(-1) },
    { id: 'theme', title: 'Switch between light, dark and system', group: 'Greenroom', run: () => setTheme(nextTheme()) },
    { id: 'api', title: 'Open the API guide', group: 'Greenroom', run: () => window.open('/docs', '_blank', 'noopener') },
  ])
  useCommands(rooms.map((room) => ({ id: `room-${room.id}`, title: room.name, detail: 'room', group: 'Rooms', run: () => goTo(room.id) })))
}

function usePageCommands(): void {
  const navigate = useNavigate()
  useCommands([
    { id: 'approvals', title: 'Approvals', detail: 'page', group: 'Greenroom', run: () => void navigate({ to: '/approvals' }) },
    { id: 'skills', title: 'Skills', detail: 'page', group: 'Greenroom', run: () => void navigate({ to: '/skills' }) },
    { id: 'new-skill', title: 'Write a skill', group: 'Greenroom', run: () => void navigate({ to: '/skills/new' }) },
    { id: 'runs', title: 'Runs', detail: 'page', group: 'Greenroom', run: () => void navigate({ to: '/runs' }) },
    { id: 'failed-runs', title: 'Runs that failed', group: 'Greenroom', run: () => void navigate({ to: '/runs', search: { status: 'failed' } }) },
    { id: 'usage', title: 'Usage and cost', detail: 'page', group: 'Greenroom', run: () => void navigate({ to: '/usage' }) },
    { id: 'security-log', title: 'Security log', detail: 'page', group: 'Greenroom', run: () => void navigate({ to: '/settings/security-log' }) },
    { id: 'settings', title: 'Settings', detail: 'tokens, appearance, about this server', group: 'Greenroom', run: () => void navigate({ to: '/settings' }) },
  ])
}

function useChatCommand(): void {
  const start = useNewChat()
  useCommands([{ id: 'new-chat', title: 'New chat', group: 'Rooms', keys: 'mod+shift+o', run: start }])
}

function useAgentCommands(): void {
  const navigate = useNavigate()
  const agents = useQuery(agentsQuery).data ?? []
  useCommands([
    { id: 'agents', title: 'Agents', detail: 'page', group: 'Agents', run: () => void navigate({ to: '/agents' }) },
    { id: 'new-agent', title: 'New agent', group: 'Agents', run: () => void navigate({ to: '/agents/new' }) },
    { id: 'mcp-servers', title: 'MCP servers', detail: 'page', group: 'Agents', run: () => void navigate({ to: '/mcp-servers' }) },
    { id: 'run-task', title: 'Run a task', group: 'Agents', keys: 'x', run: () => askForTask() },
    ...agents.flatMap(({ id, name }) => [
      { id: `agent-${id}`, title: name, detail: 'agent', group: 'Agents', run: () => void navigate({ to: '/agents/$agentId', params: { agentId: id } }) },
      { id: `task-${id}`, title: `Run a task with ${name}`, group: 'Agents', run: () => askForTask([id]) },
    ]),
  ])
}
