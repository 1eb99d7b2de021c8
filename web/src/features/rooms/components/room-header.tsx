import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Ellipsis, FileDown, FileJson, Play, Settings2, Trash2, Users } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { PageBar } from '@/components/layout/page-bar'
import { IconButton } from '@/components/ui/button'
import { later } from '@/components/ui/later'
import { Menu } from '@/components/ui/menu'
import { StatusDot } from '@/components/ui/status-dot'
import { useRoom } from '@/feed/use-feed'
import { explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import type { Room } from '@/lib/api/types'
import { useCommands } from '@/lib/commands'
import { download, fileName } from '@/lib/download'
import { askForTask } from '@/lib/execute-request'
import { notify } from '@/lib/notices'
import { usePreference } from '@/lib/preferences'
import { useStore } from '@/lib/store'
import { allMessages } from '../api/room-commands'
import { membersStore, toggleMembers } from '../model/members'
import { statusOf } from '../model/room-status'
import { useAgents } from '../model/use-agents'
import { BranchedFrom } from './branched-from'
import { RoomProject } from './room-project'
import { JournalPosition } from './journal-position'
import { t } from '../texts'
import styles from './room-header.module.css'

const DeleteRoomDialog = later(async () => (await import('./delete-room-dialog')).DeleteRoomDialog)
const RoomDialog = later(async () => (await import('./room-dialog')).RoomDialog)

export function RoomHeader({ room }: { room: Room }): ReactNode {
  const [dialog, setDialog] = useState<'settings' | 'delete' | null>(null)
  const status = useRoom(room.id, (view) => statusOf(view.state))
  const agents = useAgents()
  const members = room.agents.flatMap((id) => agents.find((agent) => agent.id === id) ?? [])
  const isShowingMembers = useStore(membersStore)
  const isDeveloper = usePreference('developer')
  const queries = useQueryClient()
  const navigate = useNavigate()

  const commands = [
    { id: 'room-settings', title: t.roomSettingsAndMembers, icon: <Settings2 size={15} aria-hidden />, run: () => setDialog('settings') },
    { id: 'room-task', title: t.runATaskWithAnAgentHere, icon: <Play size={15} aria-hidden />, run: () => askForTask(room.agents) },
    { id: 'export-markdown', title: t.exportAsMarkdown, icon: <FileDown size={15} aria-hidden />, run: () => void exportAs(room, 'md') },
    { id: 'export-json', title: t.exportAsJson, icon: <FileJson size={15} aria-hidden />, run: () => void exportAs(room, 'json') },
    { id: 'delete-room', title: t.deleteThisRoom, icon: <Trash2 size={15} aria-hidden />, run: () => setDialog('delete') },
  ]
  useCommands([
    ...commands.map(({ id, title, run }) => ({ id, title, run, group: 'room' as const })),
    { id: 'members', title: t.showOrHideMembers, group: 'room', keys: 'm', run: toggleMembers },
  ])

  return (
    <PageBar
      actions={
        <>
          <IconButton label={t.members} aria-expanded={isShowingMembers} onClick={toggleMembers}>
            <Users size={17} aria-hidden />
          </IconButton>
          <Menu
            label={t.roomActions}
            icon={<Ellipsis size={18} aria-hidden />}
            items={commands.map(({ id, title, icon, run }) => ({ label: title, icon, onSelect: run, isDangerous: id === 'delete-room' }))}
          />
        </>
      }
    >
      <StatusDot status={status} />
      <h1 className={styles.name} dir="auto">{room.name}</h1>
      <span className={styles.members}>{members.map((agent) => agent.name).join(', ') || t.noAgents}</span>
      {room.project_id && <RoomProject projectId={room.project_id} />}
      {room.forked_from && <BranchedFrom from={room.forked_from} />}
      {isDeveloper && <JournalPosition roomId={room.id} />}
      {dialog === 'settings' && <RoomDialog room={room} onClose={() => setDialog(null)} />}
      {dialog === 'delete' && (
        <DeleteRoomDialog
          room={room}
          onClose={() => setDialog(null)}
          onDeleted={() => {
            setDialog(null)
            void queries.invalidateQueries(roomsQuery).then(() => navigate({ to: '/' }))
          }}
        />
      )}
    </PageBar>
  )
}

async function exportAs(room: Room, kind: 'md' | 'json'): Promise<void> {
  // A long conversation takes a while to read; a short one is there before anyone could read this.
  const slow = setTimeout(() => notify(t.exporting(room.name)), 700)
  try {
    const [messages, { toJson, toMarkdown }] = await Promise.all([allMessages(room.id), import('../model/export-room')])
    if (kind === 'md') download(fileName(room.name, 'md'), 'text/markdown', toMarkdown(room, messages))
    else download(fileName(room.name, 'json'), 'application/json', toJson(room, messages, new Date()))
  } catch (error) {
    notify(t.theRoomWasNotExported(explain(error)), 'problem')
  } finally {
    clearTimeout(slow)
  }
}
