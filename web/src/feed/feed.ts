import type { SocketMessage, SocketRequest } from '@/lib/api/types'
import type { RoomListMessage } from '@/lib/room-list'
import type { Clock } from './clock'
import { Connection, type ConnectionStatus, type OpenLine } from './connection'
import type { FeedApi } from './feed-api'
import { Listeners } from './listeners'
import { Outbox } from './outbox'
import { RoomFeed } from './room-feed'

export interface FeedParts {
  api: FeedApi
  clock: Clock
  pageSize: number
  open: OpenLine
  /** Calls back before the next picture is drawn, or soon where none is drawn. */
  nextFrame(callback: () => void): void
}

/** All rooms of a tab over one connection. */
export class Feed {
  private readonly rooms = new Map<string, { room: RoomFeed; outbox: Outbox }>()
  private readonly connection: Connection
  private readonly listeners = new Listeners()
  readonly subscribe = this.listeners.subscribe
  private readonly dirty = new Set<{ flush(): void }>()
  private readonly roomListeners = new Set<(message: RoomListMessage) => void>()
  private readonly fileListeners = new Set<(roomId: string) => void>()

  constructor(private readonly parts: FeedParts) {
    this.connection = new Connection(parts.open, parts.clock, {
      onMessage: (message) => this.receive(message),
      onStatus: (status) => this.changed(status),
    })
  }

  start(): void {
    this.connection.start()
  }

  stop(): void {
    this.connection.stop()
  }

  get line(): Pick<Connection, 'retry' | 'drop' | 'probe'> {
    return this.connection
  }

  readonly status = (): ConnectionStatus => this.connection.status

  room(roomId: string): RoomFeed {
    return this.entry(roomId).room
  }

  outbox(roomId: string): Outbox {
    return this.entry(roomId).outbox
  }

  /** Which rooms there are and what goes on in them, as it happens. The returned function stops that. */
  onRooms(listener: (message: RoomListMessage) => void): () => void {
    this.roomListeners.add(listener)
    return () => this.roomListeners.delete(listener)
  }

  /** A file of the project of an open room was changed. The returned function stops that. */
  onFileChanged(listener: (roomId: string) => void): () => void {
    this.fileListeners.add(listener)
    return () => this.fileListeners.delete(listener)
  }

  private entry(roomId: string): { room: RoomFeed; outbox: Outbox } {
    const known = this.rooms.get(roomId)
    if (known) return known
    const { api, clock, pageSize } = this.parts
    const send = (request: SocketRequest): void => this.connection.send(request)
    const room = new RoomFeed(roomId, { api, clock, pageSize, send, schedule: (dirty) => this.schedule(dirty) })
    const entry = { room, outbox: new Outbox(api, room) }
    this.rooms.set(roomId, entry)
    return entry
  }

  private schedule(room: { flush(): void }): void {
    if (this.dirty.size === 0) {
      this.parts.nextFrame(() => {
        const rooms = [...this.dirty]
        this.dirty.clear()
        for (const one of rooms) one.flush()
      })
    }
    this.dirty.add(room)
  }

  private receive(message: SocketMessage): void {
    switch (message.type) {
      case 'rooms':
      case 'room':
      case 'room_gone':
        if (message.type === 'room_gone') this.rooms.get(message.id)?.room.gone()
        for (const listener of this.roomListeners) listener(message)
        break
      case 'event':
        this.rooms.get(message.event.room_id)?.room.receive(message.event)
        if (message.event.type === 'file_changed') for (const listener of this.fileListeners) listener(message.event.room_id)
        break
      case 'subscribed':
        this.rooms.get(message.room)?.room.headIs(message.head)
        break
      case 'heartbeat':
        for (const [id, head] of Object.entries(message.heads)) this.rooms.get(id)?.room.headIs(head)
        break
      case 'reset':
        void this.rooms.get(message.room)?.room.reset()
        break
      case 'error':
        if (message.room && message.code === 'not_found') this.rooms.get(message.room)?.room.gone()
        break
      default:
    }
  }

  private changed(status: ConnectionStatus): void {
    if (status.state === 'connected') {
      this.connection.send({ type: 'watch_rooms' })
      for (const { room, outbox } of this.rooms.values()) {
        room.connected()
        outbox.connected()
      }
    }
    this.listeners.notify()
  }
}
