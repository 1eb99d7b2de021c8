import type { RunStatus } from '@/lib/api/types'
import type { Clock } from './clock'
import { Connection, type ConnectionStatus, type OpenLine, type ServerFrame } from './connection'
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

const active: readonly RunStatus[] = ['running', 'waiting_for_approval', 'queued']
/** Rooms whose last line is read at the same time. */
const atOnce = 4

/** All rooms of a tab over one connection. */
export class Feed {
  private readonly rooms = new Map<string, { room: RoomFeed; outbox: Outbox }>()
  private readonly connection: Connection
  private readonly listeners = new Listeners()
  readonly subscribe = this.listeners.subscribe
  private readonly dirty = new Set<{ flush(): void }>()
  private waiting: string[] = []
  private reading = 0
  private readonly watched = new Set<string>()

  constructor(private readonly parts: FeedParts) {
    this.connection = new Connection(parts.open, parts.clock, {
      onFrame: (frame) => this.heard(frame),
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

  /** Follows these rooms for a list: their last line and whether someone is at work in them. */
  watch(roomIds: readonly string[]): void {
    const fresh = roomIds.filter((id) => !this.watched.has(id))
    for (const id of fresh) this.watched.add(id)
    this.waiting.push(...fresh)
    this.readNext()
  }

  private readNext(): void {
    while (this.reading < atOnce && this.waiting.length > 0) {
      const { room } = this.entry(this.waiting.shift() ?? '')
      this.reading += 1
      void room.load().finally(() => {
        this.reading -= 1
        this.readNext()
        if (this.reading === 0) void this.noteActive()
      })
    }
  }

  private async noteActive(): Promise<void> {
    try {
      const lists = await Promise.all(active.map((status) => this.parts.api.runs({ status, limit: 1000 })))
      const runs = lists.flat()
      for (const [id, { room }] of this.rooms) {
        const own = runs.filter((run) => run.room_id === id)
        if (own.length > 0) room.noteRuns(own)
      }
    } catch {
      // Only dots in a list; they come with the next event of the room.
    }
  }

  private entry(roomId: string): { room: RoomFeed; outbox: Outbox } {
    const known = this.rooms.get(roomId)
    if (known) return known
    const { api, clock, pageSize } = this.parts
    const send = (request: object): void => this.connection.send(request)
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

  private heard(frame: ServerFrame): void {
    switch (frame.type) {
      case 'event':
        this.rooms.get(frame.event.room_id)?.room.receive(frame.event)
        break
      case 'subscribed':
        this.rooms.get(frame.room)?.room.heard(frame.head)
        break
      case 'heartbeat':
        for (const [id, head] of Object.entries(frame.heads)) this.rooms.get(id)?.room.heard(head)
        break
      case 'reset':
        void this.rooms.get(frame.room)?.room.reset()
        break
      case 'error':
        if (frame.room && frame.code === 'not_found') this.rooms.get(frame.room)?.room.gone()
        break
      default:
    }
  }

  private changed(status: ConnectionStatus): void {
    if (status.state === 'connected') {
      for (const { room, outbox } of this.rooms.values()) {
        room.connected()
        outbox.connected()
      }
    }
    this.listeners.tell()
  }
}
