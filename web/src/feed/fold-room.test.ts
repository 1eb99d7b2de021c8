import { describe, expect, it } from 'vitest'
import type { RoomEvent } from './event'
import { foldRoom, hasGap } from './fold-room'
import { fromHistory, withRunEvents, withRuns } from './snapshot'
import { emptyRoom, hasEnded } from './state'
import { epoch, events, historyAt, plainFold, roomId, runsAt } from './testing/journal'
import { Random } from './testing/random'

const rounds = 60

/** Cuts a list into pieces of random length. */
function pieces<T>(list: readonly T[], random: Random): T[][] {
  const cut: T[][] = []
  for (let at = 0; at < list.length; ) {
    const length = 1 + random.below(40)
    cut.push(list.slice(at, at + length))
    at += length
  }
  return cut
}

describe('any way the events come', () => {
  const whole = plainFold()

  it('in pieces of any size', () => {
    for (let seed = 0; seed < rounds; seed += 1) {
      const batches = pieces(events, new Random(seed))
      expect(batches.reduce(foldRoom, emptyRoom(roomId, epoch)), `seed ${seed}`).toEqual(whole)
    }
  })

  it('twice, and pages in any order', () => {
    for (let seed = 0; seed < rounds; seed += 1) {
      const random = new Random(seed)
      const batches = pieces(events, random)
      const again = batches.filter(() => random.chance(0.4))
      const state = random.shuffle([...batches, ...again]).reduce(foldRoom, emptyRoom(roomId, epoch))
      expect(state, `seed ${seed}`).toEqual(whole)
      expect(hasGap(state)).toBe(false)
    }
  })

  it('every single event in any order', () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const state = new Random(seed).shuffle(events).reduce((before, event) => foldRoom(before, [event]), emptyRoom(roomId, epoch))
      expect(state, `seed ${seed}`).toEqual(whole)
    }
  })

  it('with holes: shows only what comes before the first, and the rest once it is filled', () => {
    for (let seed = 0; seed < rounds; seed += 1) {
      const random = new Random(seed)
      const lost = new Set(events.filter(() => random.chance(0.05)).map((event) => event.seq))
      const holed = foldRoom(emptyRoom(roomId, epoch), events.filter((event) => !lost.has(event.seq)))
      const first = Math.min(...lost, events.length + 1)
      expect(holed.seq, `seed ${seed}`).toBe(first - 1)
      expect(holed.messages).toEqual(plainFold(first - 1).messages)
      const filled = foldRoom(holed, events.filter((event) => lost.has(event.seq)))
      expect(filled).toEqual(whole)
    }
  })

  it('history at any position, runs from later, then the rest', () => {
    for (let seed = 0; seed < rounds; seed += 1) {
      const random = new Random(seed)
      const head = 1 + random.below(events.length)
      const later = head + random.below(events.length - head + 1)
      const rest = events.filter((event) => event.seq > head - random.below(20))
      let state = fromHistory(roomId, historyAt(head, 1000))
      const batches = pieces(rest, random)
      const when = random.below(batches.length + 1)
      batches.forEach((batch, index) => {
        if (index === when) state = withRuns(state, runsAt(later))
        state = foldRoom(state, batch)
      })
      state = withRuns(state, runsAt(events.length))
      for (const run of state.runs.values()) if (!run.whole) state = withRunEvents(state, run.id, events)
      expect(state.messages, `seed ${seed}, head ${head}`).toEqual(whole.messages)
      expect(state.runs).toEqual(whole.runs)
      expect(state.order).toEqual(whole.order)
    }
  })

  it('folding a run again in the middle of it changes nothing that was known', () => {
    for (let head = 1; head <= events.length; head += 3) {
      const state = plainFold(head)
      for (const run of state.runs.values()) expect(withRunEvents(state, run.id, events)).toEqual(state)
    }
  })
})

it('an end that REST returned early is not undone by older events', () => {
  const started = events.find((event) => event.type === 'run_started') as RoomEvent
  const early = withRuns(fromHistory(roomId, historyAt(started.seq - 1, 1000)), runsAt(events.length))
  const after = foldRoom(early, [started])
  expect(after.runs.get(started.run_id ?? '')?.status).toBe('completed')
  expect([...after.runs.values()].every(hasEnded)).toBe(true)
})

it('an event type from a newer server is passed over', () => {
  const state = plainFold()
  const strange = { ...(events[0] as RoomEvent), id: 'x', seq: events.length + 1, type: 'sang_a_song', data: { song: 1 } }
  expect(foldRoom(state, [strange])).toEqual({ ...state, seq: strange.seq, head: strange.seq })
})
