import { ApiError, explain } from '@/lib/api/client'
import { backoff } from './backoff'
import type { RoomEvent } from './event'
import { Listeners } from './listeners'
import { type ReadPage, isSameRange, olderPage } from './pages'
import { catchUp, fillHoles, readRun } from './read-events'
import { foldRoom, hasGap } from './fold-room'
import type { RoomContext, RoomView } from './room-view'
import { unfinished } from './rows'
import { fromHistory, isOpenEnded, withRunEvents, withRuns } from './snapshot'
import type { RoomState } from './state'

/** A heartbeat may name a head whose events are right behind it on the same line. */
const headGrace = 1500

/** One room: history, then live; holes are found and filled. */
export class RoomFeed {
  private view: RoomView = { phase: 'loading', problem: null, isLoadingOlder: false, state: null }
  private readonly listeners = new Listeners()
  readonly subscribe = this.listeners.subscribe
  private inbox: RoomEvent[] = []
  private isOpen = false
  private hasRuns = false
  private loading: Promise<void> | null = null
  private filling: Promise<void> | null = null
  private attempt = 0
  private generation = 0
  private readonly hydrating = new Set<string>()

  constructor(
    readonly roomId: string,
    private readonly context: RoomContext,
  ) {}

  readonly snapshot = (): RoomView => this.view

  /** From now on it is read and followed; before, it is only a name. */
  open(): void {
    if (this.isOpen) return
    this.isOpen = true
    void this.load()
  }

  /** The line is there, perhaps again. */
  connected(): void {
    if (!this.isOpen) return
    if (this.view.state) this.follow(this.view.state)
    void this.load()
  }

  receive(event: RoomEvent): void {
    if (!this.view.state) return
    this.inbox.push(event)
    this.context.schedule(this)
  }

  flush(): void {
    const { state } = this.view
    const events = this.inbox
    this.inbox = []
    if (!state || events.length === 0) return
    this.put(foldRoom(state, events))
    if (this.view.state && hasGap(this.view.state)) void this.fill()
  }

  /** The newest event of the room is at `head`. */
  headIs(head: number): void {
    const { state } = this.view
    if (!state || head <= state.seq) return
    this.put({ ...state, head: Math.max(state.head, head) })
    this.context.clock.after(headGrace, () => this.isBehind(head) && void this.fill())
  }

  /** The journal is another one now: nothing that was known of it holds but what is still to be sent. */
  async reset(): Promise<void> {
    this.context.send({ type: 'unsubscribe', room: this.roomId })
    const generation = ++this.generation
    const pending = this.view.state?.pending ?? []
    this.hasRuns = false
    this.set({ phase: 'loading', state: null })
    await this.loading
    if (generation !== this.generation) return
    await this.load()
    this.update((state) => ({ ...state, pending: [...pending, ...state.pending] }))
  }

  gone(): void {
    this.set({ phase: 'gone' })
  }

  /** Brings the room to the depth that is wanted; what fails is tried again. */
  load(): Promise<void> {
    if (this.view.phase === 'gone') return Promise.resolve()
    this.loading ??= this.loadMissing()
      .catch((error: unknown) => this.failed(error))
      .finally(() => {
        this.loading = null
      })
    return this.loading
  }

  readonly loadOlder = (): Promise<void> => this.loadPage(olderPage)

  async loadPage(read: ReadPage): Promise<void> {
    const { state, isLoadingOlder } = this.view
    if (!state || isLoadingOlder) return
    this.set({ isLoadingOlder: true })
    try {
      const { api, pageSize } = this.context
      const loaded = await read(api, state, pageSize)
      if (!loaded) return
      const { history, join } = loaded
      this.flush()
      if (this.isBehind(history.head)) await this.fill()
      if (this.isBehind(history.head)) return
      let page = fromHistory(this.roomId, history)
      if (isOpenEnded(page)) page = await catchUp(api, page, () => this.view.state ?? page)
      const current = this.view.state
      if (current?.epoch === history.epoch && isSameRange(current, state)) this.put(join(current, page))
    } finally {
      this.set({ isLoadingOlder: false })
    }
  }

  /** Folds one run from all of its events, for what history does not carry: approvals, and how long its tools took. */
  async hydrate(runId: string): Promise<void> {
    const begun = this.view.state
    const run = begun?.runs.get(runId)
    if (!begun || !run?.queuedSeq || run.whole || this.hydrating.has(runId)) return
    this.hydrating.add(runId)
    try {
      const events = await readRun(this.context.api, this.roomId, run, () => this.view.state ?? begun)
      this.update((state) => (state.epoch === begun.epoch ? withRunEvents(state, runId, events) : state))
    } finally {
      this.hydrating.delete(runId)
    }
  }

  update(change: (state: RoomState) => RoomState): void {
    if (this.view.state) this.put(change(this.view.state))
  }

  private async loadMissing(): Promise<void> {
    const { generation } = this
    if (!this.view.state) await this.loadNewest()
    if (this.hasRuns) return
    const runs = await this.context.api.runs({ room_id: this.roomId, limit: 1000 })
    this.update((state) => withRuns(state, runs))
    const begun = unfinished(this.view.state?.runs ?? new Map()).filter((run) => run.status !== 'queued')
    await Promise.all(begun.map((run) => this.hydrate(run.id)))
    this.hasRuns = generation === this.generation
    this.attempt = 0
  }

  private async loadNewest(): Promise<void> {
    const { api, pageSize } = this.context
    const state = fromHistory(this.roomId, await api.history(this.roomId, pageSize))
    this.inbox = []
    this.set({ phase: 'live', problem: null, state })
    this.follow(state)
  }

  private fill(): Promise<void> {
    const { api } = this.context
    this.filling ??= fillHoles(api, () => this.view.state, (state) => this.put(state)).finally(() => {
      this.filling = null
    })
    return this.filling.catch((error: unknown) => this.failed(error))
  }

  private isBehind(head = this.view.state?.head ?? 0): boolean {
    return this.view.state !== null && this.view.state.seq < head
  }

  private follow(state: RoomState): void {
    this.context.send({ type: 'subscribe', room: this.roomId, after: `${state.epoch}-${state.seq}` })
  }

  private failed(error: unknown): void {
    const { code, status } = error instanceof ApiError ? error : new ApiError(explain(error), 'bug', -1)
    if (status === 404) return this.gone()
    if (code === 'position_reset') return void this.reset()
    if (!this.view.state) this.set({ phase: 'failed', problem: explain(error) })
    const pause = backoff(this.attempt++, () => this.context.clock.random())
    this.context.clock.after(pause, () => {
      void this.load()
      if (this.isBehind()) void this.fill()
    })
  }

  private put(state: RoomState): void {
    if (state !== this.view.state) this.set({ state })
  }

  private set(changes: Partial<RoomView>): void {
    this.view = { ...this.view, ...changes }
    this.listeners.notify()
  }
}
