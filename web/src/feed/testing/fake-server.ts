import { ApiError } from '@/lib/api/client'
import type { EventPage } from '@/lib/api/types'
import type { Line, LineEvents } from '../connection'
import type { FeedParts } from '../feed'
import { epoch as firstEpoch, events, historyAt, roomId, runsAt } from './journal'
import type { Random } from './random'
import type { VirtualClock } from './virtual-clock'

interface Faults {
  /** A frame is lost, though the line lives on. */
  lose: number
  /** A frame comes twice. */
  double: number
  /** The line breaks with this frame. */
  cut: number
  /** A request gets no answer. */
  refuse: number
}

interface Caller {
  events: LineEvents
  after: Map<string, number>
  isOpen: boolean
}

/** A fake server with a scripted journal, behind a network with configurable faults. */
export class FakeServer {
  head = 0
  epoch = firstEpoch
  requests: string[] = []
  sentFrames: string[] = []
  isDown = false
  private callers = new Set<Caller>()

  constructor(
    private readonly clock: VirtualClock,
    private readonly random: Random,
    private readonly faults: Faults,
  ) {}

  readonly parts = (): FeedParts => ({
    clock: this.clock,
    pageSize: 1 + this.random.below(12),
    open: (lineEvents) => this.accept(lineEvents),
    nextFrame: (callback) => this.clock.after(16, callback),
    api: {
      history: (_, limit, before, since) => this.answer('history', () => ({ ...historyAt(this.head, limit, before, since), epoch: this.epoch })),
      events: (_, after, limit) => this.answer('events', () => this.page(after, limit)),
      runs: () => this.answer('runs', () => runsAt(this.head)),
      post: () => Promise.reject(new Error('this server only plays a recording')),
    },
  })

  /** Stores some more events and tells everyone who listens. */
  commit(count: number): void {
    this.head = Math.min(events.length, this.head + count)
    for (const caller of this.callers) this.deliver(caller)
  }

  heartbeat(): void {
    for (const caller of this.callers) {
      const heads = Object.fromEntries([...caller.after.keys()].map((room) => [room, this.head]))
      this.tell(caller, { type: 'heartbeat', epoch: this.epoch, heads })
    }
  }

  tellAll(frame: object): void {
    for (const caller of this.callers) this.tell(caller, frame)
  }

  /** All lines break, as when the process is killed. */
  breakLines(): void {
    for (const caller of this.callers) this.hangUp(caller)
  }

  /** An older copy of the journal takes its place. */
  restore(head: number): void {
    this.epoch = `${this.epoch}x`
    this.head = head
    this.breakLines()
  }

  behave(): void {
    Object.assign(this.faults, { lose: 0, double: 0, cut: 0, refuse: 0 })
  }

  private accept(lineEvents: LineEvents): Line {
    const caller: Caller = { events: lineEvents, after: new Map(), isOpen: false }
    this.clock.after(1 + this.random.below(30), () => {
      if (this.isDown) return lineEvents.onClose()
      caller.isOpen = true
      this.callers.add(caller)
      lineEvents.onOpen()
    })
    return { send: (text) => this.hear(caller, text), close: () => this.callers.delete(caller) }
  }

  private hear(caller: Caller, text: string): void {
    this.sentFrames.push(text)
    const request = JSON.parse(text) as { type: string; room: string; after: string }
    if (request.type === 'ping') this.tell(caller, { type: 'pong' })
    if (request.type === 'watch_rooms') this.tell(caller, { type: 'rooms', rooms: [] })
    if (request.type === 'unsubscribe') caller.after.delete(request.room)
    if (request.type !== 'subscribe') return
    const isHere = this.isHere(request.after)
    caller.after.set(request.room, isHere ? seqOf(request.after) : 0)
    const { room } = request
    this.tell(caller, { type: 'subscribed', room, epoch: this.epoch, head: this.head })
    if (!isHere) this.tell(caller, { type: 'reset', room, epoch: this.epoch, head: this.head })
    this.deliver(caller)
  }

  private deliver(caller: Caller): void {
    for (let after = caller.after.get(roomId); after !== undefined && after < this.head; after += 1) {
      caller.after.set(roomId, after + 1)
      if (this.random.chance(this.faults.cut)) return this.hangUp(caller)
      if (this.random.chance(this.faults.lose)) continue
      const frame = { type: 'event', event: events[after] }
      this.tell(caller, frame)
      if (this.random.chance(this.faults.double)) this.tell(caller, frame)
    }
  }

  private tell(caller: Caller, frame: object): void {
    const text = JSON.stringify(frame)
    if (caller.isOpen) this.clock.after(2, () => caller.isOpen && caller.events.onText(text))
  }

  private hangUp(caller: Caller): void {
    this.callers.delete(caller)
    caller.isOpen = false
    this.clock.after(1, () => caller.events.onClose())
  }

  private isHere(position: string): boolean {
    return position.startsWith(`${this.epoch}-`) && seqOf(position) <= this.head
  }

  private page(after: string, limit: number): EventPage {
    if (!this.isHere(after)) throw new ApiError('start over', 'position_reset', 409)
    const from = seqOf(after)
    const length = Math.min(limit, 1 + this.random.below(60))
    const until = Math.min(this.head, from + length)
    return { epoch: this.epoch, head: this.head, events: events.slice(from, until) as EventPage['events'] }
  }

  /** The answer is made at one moment and arrives at a later one. */
  private async answer<T>(what: string, make: () => T): Promise<T> {
    this.requests.push(what)
    await this.clock.sleep(1 + this.random.below(20))
    if (this.isDown || this.random.chance(this.faults.refuse)) throw new ApiError('nobody there', 'offline', 0)
    const made = make()
    await this.clock.sleep(1 + this.random.below(40))
    return made
  }
}

function seqOf(position: string): number {
  return Number(position.slice(position.indexOf('-') + 1))
}
