import { describe, expect, it } from 'vitest'
import { Feed } from './feed'
import type { RoomState } from './state'
import { FakeServer } from './testing/fake-server'
import { events, plainFold, roomId } from './testing/journal'
import { Random } from './testing/random'
import { VirtualClock } from './testing/virtual-clock'

interface Scene {
  feed: Feed
  server: FakeServer
  clock: VirtualClock
  random: Random
}

function scene(seed: number, faults = { lose: 0, double: 0, cut: 0, refuse: 0 }): Scene {
  const random = new Random(seed)
  const clock = new VirtualClock(random.next)
  const server = new FakeServer(clock, random, faults)
  const feed = new Feed(server.parts())
  return { feed, server, clock, random }
}

function stateOf(feed: Feed): RoomState {
  const { state } = feed.room(roomId).snapshot()
  if (!state) throw new Error('the room is not loaded')
  return state
}

/** The state at any time equals the journal up to that time: nothing missing, nothing duplicated. */
function expectPrefix(feed: Feed, note: string): void {
  const { state } = feed.room(roomId).snapshot()
  if (!state) return
  const plain = plainFold(state.seq)
  for (const id of state.order) {
    const shown = state.messages.get(id)
    const meant = plain.messages.get(id)
    const texts = (message: typeof shown) => message?.parts.map((part) => (part.type === 'tool' ? part.output : part.text))
    expect(texts(shown), `${note}, seq ${state.seq}`).toEqual(texts(meant))
    expect(shown?.status, `${note}, seq ${state.seq}`).toBe(meant?.status)
  }
  const loaded = plain.order.filter((id) => (plain.messages.get(id)?.seq ?? 0) >= state.loadedFrom)
  expect(state.order, `${note}, seq ${state.seq}`).toEqual(loaded)
}

async function readBack({ feed, clock }: Scene): Promise<void> {
  for (let i = 0; i < 60 && stateOf(feed).loadedFrom > 0; i += 1) {
    void feed.room(roomId).loadOlder()
    await clock.pass(200)
  }
  for (const run of stateOf(feed).runs.values()) void feed.room(roomId).hydrate(run.id)
  await clock.pass(2000)
}

describe('a feed', () => {
  it('converges to the plain fold, and never shows anything but a prefix of the journal, on any network', async () => {
    for (let seed = 0; seed < 60; seed += 1) {
      const all = scene(seed, { lose: 0.02, double: 0.05, cut: 0.01, refuse: 0.05 })
      const { feed, server, clock, random } = all
      server.commit(random.below(events.length))
      feed.start()
      if (random.chance(0.7)) feed.room(roomId).open()
      while (server.head < events.length) {
        await clock.pass(random.below(120))
        server.commit(random.below(12))
        if (random.chance(0.05)) server.breakLines()
        if (random.chance(0.1)) server.heartbeat()
        if (random.chance(0.1)) feed.room(roomId).open()
        if (random.chance(0.1)) void feed.room(roomId).loadOlder().catch(() => {})
        expectPrefix(feed, `seed ${seed}`)
      }
      server.behave()
      feed.room(roomId).open()
      await clock.pass(40_000)
      server.heartbeat()
      await clock.pass(5000)
      await readBack(all)
      const state = stateOf(feed)
      const whole = plainFold()
      expect(state.seq, `seed ${seed}`).toBe(events.length)
      expect(state.messages, `seed ${seed}`).toEqual(whole.messages)
      expect(state.runs, `seed ${seed}`).toEqual(whole.runs)
      expect(state.order).toEqual(whole.order)
      feed.stop()
    }
  })

  it('notices by a heartbeat that the last event was lost', async () => {
    const { feed, server, clock } = scene(1)
    server.commit(events.length - 1)
    feed.start()
    feed.room(roomId).open()
    await clock.pass(2000)
    expect(stateOf(feed).seq).toBe(events.length - 1)
    Object.assign(server, { deliver: () => {} })
    server.commit(1)
    await clock.pass(1000)
    expect(stateOf(feed).seq, 'nothing announced it').toBe(events.length - 1)
    server.heartbeat()
    await clock.pass(3000)
    expect(stateOf(feed).seq).toBe(events.length)
  })

  it('fills a hole as soon as it is seen', async () => {
    const { feed, server, clock } = scene(4)
    server.commit(100)
    feed.start()
    feed.room(roomId).open()
    await clock.pass(1000)
    feed.room(roomId).receive(events[104] as (typeof events)[number])
    server.head = 105
    await clock.pass(300)
    expect(stateOf(feed).seq).toBe(105)
  })

  it('catches up before it puts an older page in front, for that page may be ahead of it', async () => {
    const answered = events.find((event) => event.type === 'run_completed' && event.seq > 130)?.seq ?? 0
    const begun = events.findLast((event) => event.type === 'stream_start' && event.seq < answered)?.seq ?? 0
    const { feed, server, clock } = scene(5)
    server.commit(begun + 2)
    feed.start()
    feed.room(roomId).open()
    await clock.pass(1000)
    Object.assign(server, { deliver: () => {} })
    server.commit(answered + 10)
    void feed.room(roomId).loadOlder()
    await clock.pass(1000)
    expectPrefix(feed, 'an older page')
    expect(stateOf(feed).seq).toBe(server.head)
    expect(stateOf(feed).order.length).toBeGreaterThan(1)
  })

  it('starts over when the journal was replaced by an older copy', async () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const all = scene(seed, { lose: 0, double: 0.05, cut: 0.01, refuse: 0.05 })
      const { feed, server, clock, random } = all
      server.commit(80 + random.below(120))
      feed.start()
      feed.room(roomId).open()
      await clock.pass(random.below(400))
      server.restore(random.below(120))
      while (server.head < events.length) {
        server.commit(random.below(12))
        await clock.pass(random.below(120))
        expectPrefix(feed, `seed ${seed}`)
      }
      server.behave()
      await clock.pass(40_000)
      await readBack(all)
      expect(stateOf(feed).epoch).toBe(server.epoch)
      expect(stateOf(feed).messages, `seed ${seed}`).toEqual(plainFold().messages)
      feed.stop()
    }
  })

  it('reads nothing of a room that nobody has opened', async () => {
    const { feed, server, clock } = scene(3)
    server.commit(events.length)
    feed.room(roomId)
    feed.start()
    await clock.pass(1000)
    expect(feed.room(roomId).snapshot().state).toBeNull()
    expect(server.requests).toEqual([])
    feed.room(roomId).open()
    await clock.pass(1000)
    expect(stateOf(feed).order.length).toBeGreaterThan(0)
  })

  it('passes on changes of all rooms, and subscribes to them again with every new connection', async () => {
    const { feed, server, clock } = scene(4)
    const received: string[] = []
    feed.onRooms((frame) => received.push(frame.type))
    feed.start()
    await clock.pass(1000)
    expect(received).toEqual(['rooms'])
    server.tellAll({ type: 'room_gone', id: roomId })
    await clock.pass(1000)
    expect(received).toEqual(['rooms', 'room_gone'])
    server.breakLines()
    await clock.pass(5000)
    expect(received).toEqual(['rooms', 'room_gone', 'rooms'])
  })

  it('uses one connection for all rooms', async () => {
    const { feed, server, clock } = scene(2)
    server.commit(events.length)
    feed.start()
    const all = [roomId, 'other-room', 'third-room']
    for (const id of all) feed.room(id).open()
    await clock.pass(1000)
    const asked = server.sentFrames.map((text) => JSON.parse(text) as { type: string; room: string })
    expect(new Set(asked.filter(({ type }) => type === 'subscribe').map(({ room }) => room))).toEqual(new Set(all))
    expect(feed.status()).toEqual({ state: 'connected' })
  })
})
