import { useVirtualizer } from '@tanstack/react-virtual'
import { useNavigate, useParams } from '@tanstack/react-router'
import { Archive, CheckCheck, Folder, Pencil, Pin, PinOff, Trash2 } from 'lucide-react'
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { ContextMenu, type Point } from '@/components/ui/context-menu'
import { later } from '@/components/ui/later'
import type { MenuItem } from '@/components/ui/menu-list'
import type { RoomSummary } from '@/lib/api/types'
import { useCommands } from '@/lib/commands'
import { useDay } from '@/lib/use-day'
import { railRows } from '../model/rail-rows'
import { markRead } from '../model/read-marks'
import { useOrganize } from '../model/use-organize'
import { RoomRailItem } from './room-rail-item'
import { t } from '../texts'
import archiveStyles from './archived-dialog.module.css'
import styles from './room-rail.module.css'

const DeleteRoomDialog = later(async () => (await import('./delete-room-dialog')).DeleteRoomDialog)

const FolderDialog = later(async () => (await import('./folder-dialog')).FolderDialog)
const ArchivedDialog = later(async () => (await import('./archived-dialog')).ArchivedDialog)

const [titleHeight, roomHeight] = [30, 53]

/** The list of rooms. Only what is seen is drawn: hundreds of rooms are a few lines. */
export function RoomRailList({ rooms, text }: { rooms: readonly RoomSummary[]; text: string }): ReactNode {
  const today = useDay()
  const rows = useMemo(() => railRows(rooms, text, today), [rooms, text, today])
  const scroller = useRef<HTMLDivElement>(null)
  const [menu, setMenu] = useState<{ room: RoomSummary; at: Point } | null>(null)
  const [renaming, setRenaming] = useState<string | null>(null)
  const [filing, setFiling] = useState<RoomSummary | null>(null)
  const [isArchiveOpen, setIsArchiveOpen] = useState(false)
  const organize = useOrganize()
  useCommands([{ id: 'archived-rooms', title: t.archivedRooms, group: 'rooms', run: () => setIsArchiveOpen(true) }])
  const [deleting, setDeleting] = useState<RoomSummary | null>(null)
  const { roomId } = useParams({ strict: false })
  const navigate = useNavigate()

  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (rows[index]?.kind === 'title' ? titleHeight : roomHeight),
    getItemKey: useCallback((index: number) => rows[index]?.key ?? index, [rows]),
    overscan: 6,
    initialRect: { width: 260, height: 800 },
  })

  // A room that was opened by a key or a link may be far down.
  const openAt = rows.findIndex((row) => row.key === roomId)
  useEffect(() => {
    if (openAt >= 0) virtualizer.scrollToIndex(openAt, { align: 'auto' })
    // Only when another room is opened: the list must not move while it is read.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [roomId])

  const showMenu = useCallback((room: RoomSummary, at: Point) => setMenu({ room, at }), [])
  const itemsFor = (room: RoomSummary): MenuItem[] => [
    { label: t.rename, icon: <Pencil size={15} aria-hidden />, onSelect: () => setRenaming(room.id) },
    room.pinned
      ? { label: t.unpin, icon: <PinOff size={15} aria-hidden />, onSelect: () => organize(room.id, { pinned: false }) }
      : { label: t.pin, icon: <Pin size={15} aria-hidden />, onSelect: () => organize(room.id, { pinned: true }) },
    { label: t.moveToFolder, icon: <Folder size={15} aria-hidden />, onSelect: () => setFiling(room) },
    { label: t.archive, icon: <Archive size={15} aria-hidden />, onSelect: () => organize(room.id, { archived: true }) },
    { label: t.markAsRead, icon: <CheckCheck size={15} aria-hidden />, onSelect: () => markRead(room.id, room.head) },
    { label: t.deleteRoom, icon: <Trash2 size={15} aria-hidden />, onSelect: () => setDeleting(room), isDangerous: true },
  ]

  return (
    <>
      <div ref={scroller} className={styles.list}>
        <ul className={styles.sheet} style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => {
            const row = rows[item.index]
            if (!row) return null
            return (
              <li key={item.key} className={styles.row} style={{ height: item.size, transform: `translateY(${item.start}px)` }}>
                {row.kind === 'title' ? (
                  <span className={styles.group}>{row.title}</span>
                ) : (
                  <RoomRailItem room={row.room} isRenaming={renaming === row.room.id} onRename={setRenaming} onMenu={showMenu} />
                )}
              </li>
            )
          })}
        </ul>
        {text === '' && rooms.length > 0 && (
          <button type="button" className={archiveStyles.open} onClick={() => setIsArchiveOpen(true)}>
            <Archive size={13} aria-hidden />
            {t.archivedRooms}
          </button>
        )}
        {rows.length === 0 && text !== '' && <p className={styles.nothing}>{t.noRoomsMatch}</p>}
      </div>
      {menu && (
        <ContextMenu
          label={t.actionsFor(menu.room.name)}
          at={menu.at}
          items={itemsFor(menu.room)}
          onClose={(byKey) => {
            setMenu(null)
            if (byKey) document.querySelector<HTMLElement>(`[data-room="${menu.room.id}"]`)?.focus()
          }}
        />
      )}
      {filing && <FolderDialog room={filing} onClose={() => setFiling(null)} />}
      {isArchiveOpen && <ArchivedDialog onClose={() => setIsArchiveOpen(false)} />}
      {deleting && (
        <DeleteRoomDialog
          room={deleting}
          onClose={() => setDeleting(null)}
          onDeleted={() => {
            setDeleting(null)
            if (deleting.id === roomId) void navigate({ to: '/' })
          }}
        />
      )}
    </>
  )
}
