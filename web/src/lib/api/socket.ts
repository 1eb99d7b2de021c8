import type { RoomSummary } from './types'

/** Messages to the server's WebSocket. */
export type SocketRequest =
  | { type: 'subscribe'; room: string; after: string }
  | { type: 'unsubscribe'; room: string }
  | { type: 'watch_rooms' }
  | { type: 'ping' }

/** The messages that change the list of rooms. */
export type RoomListMessage =
  | { type: 'rooms'; rooms: RoomSummary[] }
  | { type: 'room'; room: RoomSummary }
  | { type: 'room_gone'; id: string }
