import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { roomsQuery } from '@/lib/api/queries'
import type { RoomSummary } from '@/lib/api/types'
import { type Attention, attentionIn } from '@/lib/attention'
import { setTitleBadge } from '@/lib/page-title'
import { preference } from '@/lib/preferences'
import { playTone } from '@/lib/tone'

/** The number in the title of the tab; and, where they are switched on, notifications and a sound while nobody looks. */
export function useAttention(): number {
  const rooms = useQuery(roomsQuery).data
  const navigate = useNavigate()
  const before = useRef<readonly RoomSummary[]>([])
  const waiting = rooms?.filter((room) => room.waiting).length ?? 0

  useEffect(() => setTitleBadge(waiting), [waiting])

  useEffect(() => {
    if (!rooms) return
    const changes = attentionIn(before.current, rooms)
    before.current = rooms
    if (!document.hidden || changes.length === 0) return
    if (preference('sound')) playTone()
    if (!preference('notifications') || globalThis.Notification?.permission !== 'granted') return
    for (const change of changes) show(change, () => void navigate({ to: '/rooms/$roomId', params: { roomId: change.roomId } }))
  }, [rooms, navigate])

  return waiting
}

function show({ roomId, title, body }: Attention, open: () => void): void {
  const notification = new Notification(title, { body, tag: roomId, icon: '/favicon.svg' })
  notification.addEventListener('click', () => {
    window.focus()
    open()
    notification.close()
  })
}
