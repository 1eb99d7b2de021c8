import { expect, it } from 'vitest'
import { Feed } from './feed'
import { pageAround, skippedPage } from './pages'
import { rowsOf } from './rows'
import type { RoomState } from './state'
import { FakeServer } from './testing/fake-server'
import { events, plainFold, roomId } from './testing/journal'
import { Random } from './testing/random'
import { VirtualClock } from './testing/virtual-clock'

it('goes to an early message in two requests, and closes the gap below it page by page', async () => {
  const whole = plainFold()
  const early = whole.messages.get(whole.order[0] ?? '')?.seq ?? 0
  let skips = 0
  for (let seed = 0; seed < 30; seed += 1) {
    const random = new Random(seed)
    const clock = new VirtualClock(random.next)
    const server = new FakeServer(clock, random, { lose: 0, double: 0, cut: 0, refuse: 0 })
    const feed = new Feed(server.parts())
    const stateOf = (): RoomState => feed.room(roomId).snapshot().state ?? whole
    server.commit(events.length)
    feed.start()
    feed.room(roomId).open()
    await clock.pass(500)
    if (stateOf().loadedFrom <= early) continue
    const before = server.requests.filter((what) => what === 'history').length
    void feed.room(roomId).loadPage(pageAround(early))
    await clock.pass(500)
    expect(server.requests.filter((what) => what === 'history').length - before).toBeLessThanOrEqual(2)
    expect([...stateOf().messages.values()].some(({ seq }) => seq === early)).toBe(true)
    if (stateOf().skipped) skips += 1
    for (let i = 0; i < 200 && stateOf().skipped; i += 1) {
      expect(rowsOf(stateOf()).filter((row) => row.kind === 'skipped')).toHaveLength(1)
      void feed.room(roomId).loadPage(skippedPage)
      await clock.pass(200)
    }
    expect(stateOf().skipped).toBeNull()
    expect(stateOf().order).toEqual(whole.order.filter((id) => (whole.messages.get(id)?.seq ?? 0) >= stateOf().loadedFrom))
  }
  expect(skips).toBeGreaterThan(3)
})
