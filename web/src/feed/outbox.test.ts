import { describe, expect, it } from 'vitest'
import { ApiError } from '@/lib/api/client'
import type { NewMessage, Posted } from '@/lib/api/types'
import type { RoomEvent } from './event'
import { Feed } from './feed'
import { rowsOf } from './rows'
import { textOf } from './message-text'
import { FakeServer } from './testing/fake-server'
import { epoch, roomId } from './testing/journal'
import { Random } from './testing/random'
import { VirtualClock } from './testing/virtual-clock'

/** A server that stores what is posted, and whose answers may be lost on the way back. */
class Postbox {
  readonly stored: RoomEvent[] = []
  private readonly byKey = new Map<string, RoomEvent>()

  post(message: NewMessage, key: string): Posted {
    const event = this.byKey.get(key) ?? this.store(message.text, `message-${this.stored.length}`)
    this.byKey.set(key, event)
    const id = (event.data as { message_id: string }).message_id
    return { message: { id, seq: event.seq } as Posted['message'], runs: [] }
  }

  store(text: string, message_id: string): RoomEvent {
    const seq = this.stored.length + 1
    const data = { message_id, author: { kind: 'person', name: 'local' }, text, when_busy: 'enqueue' }
    const event = { id: `event-${seq}`, room_id: roomId, seq, type: 'message_posted', run_id: null, agent_id: null, data, created_at: '' }
    this.stored.push(event)
    return event
  }
}

function shownTexts(feed: Feed): string[] {
  const { state } = feed.room(roomId).snapshot()
  if (!state) return []
  return rowsOf(state).map((row) => {
    if (row.kind === 'pending') return row.pending.text
    if (row.kind === 'skipped') return '…'
    const message = state.messages.get(row.kind === 'together' ? (row.ids[0] ?? '') : row.id)
    return message ? textOf(message) : ''
  })
}

describe('what a person sends', () => {
  it('is on the screen once from the moment it is sent, whatever is lost and in any order', async () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const random = new Random(seed)
      const clock = new VirtualClock(random.next)
      const postbox = new Postbox()
      const parts = new FakeServer(clock, random, { lose: 0, double: 0, cut: 0, refuse: 0 }).parts()
      let isBad = true
      const feed = new Feed({
        ...parts,
        api: {
          ...parts.api,
          history: async () => ({ epoch, head: 0, messages: [], has_more: false }),
          runs: async () => [],
          async post(_, message, key) {
            await clock.sleep(random.below(30))
            const isLostBefore = isBad && random.chance(0.2)
            if (isLostBefore) throw new ApiError('gone', 'offline', 0)
            const posted = postbox.post(message, key)
            await clock.sleep(random.below(60))
            const isLostAfter = isBad && random.chance(0.2)
            if (isLostAfter) throw new ApiError('gone', 'offline', 0)
            return posted
          },
        },
      })
      feed.start()
      feed.room(roomId).open()
      await clock.pass(200)
      const sent: string[] = []
      let delivered = 0
      for (let step = 0; step < 40; step += 1) {
        if (random.chance(0.3) && sent.length < 8) {
          const text = `text ${random.below(3)}`
          sent.push(text)
          void feed.outbox(roomId).send({ text, mentions: [], whenBusy: null })
        }
        await clock.pass(random.below(30))
        while (delivered < postbox.stored.length && random.chance(0.5)) {
          feed.room(roomId).receive(postbox.stored[delivered++] as RoomEvent)
        }
        await clock.pass(20)
        expect(shownTexts(feed).sort(), `seed ${seed}, step ${step}`).toEqual(sent.toSorted())
        if (random.chance(0.1)) feed.outbox(roomId).connected()
      }
      isBad = false
      for (let i = 0; i < 3; i += 1) {
        feed.outbox(roomId).connected()
        await clock.pass(500)
        while (delivered < postbox.stored.length) feed.room(roomId).receive(postbox.stored[delivered++] as RoomEvent)
        await clock.pass(100)
      }
      expect(shownTexts(feed).sort(), `seed ${seed}`).toEqual(sent.toSorted())
      expect(feed.room(roomId).snapshot().state?.pending, `seed ${seed}`).toEqual([])
      expect(postbox.stored.length, `seed ${seed}`).toBe(sent.length)
    }
  })
})
