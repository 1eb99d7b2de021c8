import { expect, it } from 'vitest'
import { type RoomView, numbers, openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

it('kill -9 while it streams: the page says so, comes back by itself, and what was said is there once', async () => {
  const room = await openRoom(stage, 'Outage')
  await room.say('!count 400 25')
  await room.hears(numbers(20))
  await stage.server.kill()
  await room.page.getByText('Reconnecting').waitFor()
  await stage.server.up()
  const up = performance.now()
  await room.page.getByText('Connected', { exact: true }).waitFor({ timeout: 20_000 })
  // Three seconds at most between two attempts, and one for a busy machine.
  expect(performance.now() - up).toBeLessThan(4000)
  await room.hears('The server restarted while this was running', 40_000)
  const said = await room.lastAnswer.locator('p').first().innerText()
  expect(numbers(400).startsWith(said)).toBe(true)
  expect(said.length).toBeGreaterThanOrEqual(numbers(20).length)
  const { messages } = await history(room)
  expect(messages.at(-1)?.text).toBe(said)
  await room.say('!count 3')
  await room.hears('1 2 3')
})

it('offline for ten seconds in the middle of an answer: everything is there afterwards, once', async () => {
  const room = await openRoom(stage, 'Outage')
  await room.say('!count 160 100')
  await room.hears(numbers(10))
  const context = room.page.context()
  await context.setOffline(true)
  await room.page.getByText(/Reconnecting|Connection lost/).first().waitFor()
  const before = await room.lastAnswer.locator('p').first().innerText()
  await room.page.waitForTimeout(10_000)
  expect(await room.lastAnswer.locator('p').first().innerText()).toBe(before)
  await context.setOffline(false)
  await room.page.getByText('Connected', { exact: true }).waitFor({ timeout: 10_000 })
  await room.hears(numbers(100), 5000)
  await room.hears(numbers(160), 20_000)
  expect(await room.lastAnswer.locator('p').first().innerText()).toBe(numbers(160))
})

it('what is said while offline is kept, sent once the line is back, and answered once', async () => {
  const room = await openRoom(stage, 'Outage')
  const context = room.page.context()
  await context.setOffline(true)
  await room.page.getByText(/Reconnecting/).first().waitFor()
  await room.say('Said in a tunnel')
  await room.page.getByText('Will send when you’re back online').waitFor()
  await context.setOffline(false)
  await room.hears('Said in a tunnel')
  expect(await room.page.locator('article[data-kind=person]').filter({ hasText: 'Said in a tunnel' }).count()).toBe(1)
  const { messages } = await history(room)
  expect(messages.filter((message) => message.text === 'Said in a tunnel')).toHaveLength(1)
})

async function history(room: RoomView): Promise<{ messages: { text: string }[] }> {
  const id = new URL(room.page.url()).pathname.split('/').at(-1)
  return stage.server.api(`/rooms/${id}/messages`)
}
