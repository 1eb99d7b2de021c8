import { ApiError, explain, newKey } from '@/lib/api/client'
import type { Attachment, WhenBusy } from '@/lib/api/types'
import type { FeedApi } from './feed-api'
import { confirmed, discarded, offline, refused, resent, withPending } from './pending'
import type { RoomFeed } from './room-feed'
import type { Pending } from './state'

export interface Draft {
  text: string
  /** By the addresses under which they were uploaded. */
  attachments?: readonly Attachment[]
  mentions: readonly string[]
  whenBusy: WhenBusy | null
}

/** Sends messages. The idempotency key stays with the message, so a retry after a lost connection posts it once. */
export class Outbox {
  constructor(
    private readonly api: FeedApi,
    private readonly room: RoomFeed,
  ) {}

  send(draft: Draft): Promise<void> {
    const sent = { ...draft, attachments: draft.attachments ?? [], key: newKey(), createdAt: new Date().toISOString() }
    this.room.update((state) => withPending(state, sent))
    return this.post(sent)
  }

  async resend(key: string): Promise<void> {
    const pending = this.find(key)
    if (!pending) return
    this.room.update((state) => resent(state, key))
    await this.post(pending)
  }

  discard(key: string): void {
    this.room.update((state) => discarded(state, key))
  }

  /** What could not be sent for want of a line is sent now that there is one. */
  connected(): void {
    const pending = this.room.snapshot().state?.pending ?? []
    for (const one of pending) if (one.state === 'offline') void this.resend(one.key)
  }

  private async post(pending: Pick<Pending, 'key' | 'text' | 'attachments' | 'mentions' | 'whenBusy'>): Promise<void> {
    const { key, text, attachments, mentions, whenBusy } = pending
    try {
      const body = { text, attachments: [...attachments], mentions: [...mentions], ...(whenBusy && { when_busy: whenBusy }) }
      const posted = await this.api.post(this.room.roomId, body, key)
      this.room.update((state) => confirmed(state, key, posted.message))
    } catch (error) {
      const isOffline = error instanceof ApiError && error.isOffline
      const code = error instanceof ApiError ? error.code : null
      this.room.update((state) => (isOffline ? offline(state, key) : refused(state, key, explain(error), code)))
    }
  }

  private find(key: string): Pending | undefined {
    return this.room.snapshot().state?.pending.find((one) => one.key === key)
  }
}
