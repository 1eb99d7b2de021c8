import type { SocketMessage, SocketRequest } from '@/lib/api/types'
import { backoff } from './backoff'
import type { Clock } from './clock'

export type ConnectionStatus =
  | { state: 'connecting' }
  | { state: 'connected' }
  | { state: 'reconnecting'; attempt: number }
  | { state: 'lost'; attempt: number }

/** The part of a WebSocket that is used. */
export interface Line {
  send(text: string): void
  close(): void
}

export interface LineEvents {
  onOpen(): void
  onText(text: string): void
  onClose(): void
}

export type OpenLine = (events: LineEvents) => Line

/** Silence after which the server is asked whether it is still there; its heartbeats come more often than this. */
const quiet = 20_000
const patience = 5_000
const openPatience = 10_000
/** Failed attempts until the user is notified; retries continue. */
const manyAttempts = 5

interface Hooks {
  onMessage(message: SocketMessage): void
  onStatus(status: ConnectionStatus): void
}

/** A connection to the server that reconnects automatically. It does not know rooms. */
export class Connection {
  private line: Line | null = null
  private isStarted = false
  private isOpen = false
  private attempt = 0
  private receivedAt = 0
  private callOff: (() => void) | null = null
  private watch: (() => void) | null = null
  status: ConnectionStatus = { state: 'connecting' }

  constructor(
    private readonly open: OpenLine,
    private readonly clock: Clock,
    private readonly hooks: Hooks,
  ) {}

  /** Connects, and reconnects until it is stopped. Does nothing if it was started before. */
  start(): void {
    if (this.isStarted) return
    this.isStarted = true
    this.attempt = 0
    this.dial()
  }

  stop(): void {
    this.isStarted = false
    this.hangUp()
    this.callOff?.()
    this.callOff = null
  }

  /** Reconnects at once, ignoring the backoff: the user asked, or the network is back. */
  retry(): void {
    if (this.isOpen || !this.isStarted) return
    this.attempt = 0
    this.hangUp()
    this.callOff?.()
    this.dial()
  }

  /** The network is offline: the connection is dead even without a close event. */
  drop(): void {
    if (!this.isStarted) return
    this.hangUp()
    this.comeBack()
  }

  /** After a sleep or in a tab that was hidden the line may be dead without a sign. */
  probe(): void {
    if (this.isOpen && this.clock.now() - this.receivedAt > patience) this.ask()
  }

  send(request: SocketRequest): void {
    if (this.isOpen) this.line?.send(JSON.stringify(request))
  }

  private dial(): void {
    this.setStatus(this.attempt === 0 && this.status.state === 'connecting' ? { state: 'connecting' } : this.trying())
    const line: Line = this.open({
      onOpen: () => this.line === line && this.opened(),
      onText: (text) => this.line === line && this.receive(text),
      onClose: () => this.line === line && this.drop(),
    })
    this.line = line
    this.setWatch(openPatience, () => this.drop())
  }

  private opened(): void {
    this.isOpen = true
    this.attempt = 0
    this.receivedAt = this.clock.now()
    this.setStatus({ state: 'connected' })
    this.setWatch(quiet, () => this.ask())
  }

  private receive(text: string): void {
    this.receivedAt = this.clock.now()
    this.setWatch(quiet, () => this.ask())
    this.hooks.onMessage(JSON.parse(text) as SocketMessage)
  }

  private ask(): void {
    this.send({ type: 'ping' })
    this.setWatch(patience, () => this.drop())
  }

  private comeBack(): void {
    const pause = backoff(this.attempt, () => this.clock.random())
    this.attempt += 1
    this.setStatus(this.trying())
    this.callOff?.()
    this.callOff = this.clock.after(pause, () => this.dial())
  }

  private trying(): ConnectionStatus {
    const { attempt } = this
    return { state: attempt > manyAttempts ? 'lost' : 'reconnecting', attempt }
  }

  private hangUp(): void {
    const line = this.line
    this.line = null
    this.isOpen = false
    this.setWatch(0, null)
    line?.close()
  }

  private setWatch(millis: number, callback: (() => void) | null): void {
    this.watch?.()
    this.watch = callback && this.clock.after(millis, callback)
  }

  private setStatus(status: ConnectionStatus): void {
    this.status = status
    this.hooks.onStatus(status)
  }
}
