import { describe, expect, it } from 'vitest'
import { RoomView, numbers, openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

describe('a newcomer', () => {
  it('is in a room and can type at once', async () => {
    const page = await stage.page('/')
    const room = new RoomView(page)
    await room.field.waitFor()
    expect(page.url()).toMatch(/\/rooms\/[0-9a-f-]{36}$/)
    expect(await room.field.evaluate((field) => field === document.activeElement)).toBe(true)
    const ready = await page.evaluate(() => performance.getEntriesByName('room-ready')[0]?.startTime)
    console.log(`ready to type ${Math.round(ready ?? Number.NaN)} ms after the address was entered`)
    expect(ready).toBeLessThan(3000)
    await page.getByText('Greenroom runs AI agents in rooms').waitFor()
  })

  it('gets an answer, with what it took, and only one room was made', async () => {
    const room = new RoomView(await stage.page('/'))
    await room.page.getByRole('button', { name: /Look at the clock/ }).click()
    await room.hears(/I used look.*tokens/s)
    const { rooms } = await stage.server.api<{ rooms: unknown[] }>('/rooms')
    expect(rooms).toHaveLength(1)
  })
})

describe('an answer that streams', () => {
  it('shows its words one by one, in order', async () => {
    const room = await openRoom(stage, 'Stream')
    await room.say('!count 30 50')
    await room.hears('1 2 3')
    expect(await textOfLast(room)).not.toContain(' 30')
    await room.hears(numbers(30))
  })

  it('survives a reload in the middle without a missing or doubled word', async () => {
    const room = await openRoom(stage, 'Stream')
    await room.say('!count 60 50')
    await room.hears('1 2 3 4 5')
    await room.page.reload()
    await room.hears('1 2 3 4 5')
    expect(await textOfLast(room)).not.toContain(' 60')
    await room.hears(numbers(60))
    expect(await textOfLast(room)).toBe(numbers(60))
  })

  it('is the same in two tabs while it streams and afterwards', async () => {
    const first = await openRoom(stage, 'Stream')
    const second = new RoomView(await first.page.context().newPage())
    await second.page.goto(first.page.url())
    await second.field.waitFor()
    await first.say('!count 40 50')
    await Promise.all([first.hears('1 2 3'), second.hears('1 2 3')])
    await Promise.all([first.hears(numbers(40)), second.hears(numbers(40))])
    await second.say('From the other one')
    await Promise.all([first.hears(/From the other one.*tokens/s), second.hears(/From the other one.*tokens/s)])
    const [one, other] = await Promise.all([shownTexts(first), shownTexts(second)])
    expect(one).toEqual(other)
  })
})

it('a link to a message leads to it', async () => {
  const room = await openRoom(stage, 'Stream')
  for (const text of ['First of all', '!count 400', 'Last of all']) {
    await room.say(text)
    await room.lastAnswer.getByText(/tokens/).waitFor()
  }
  const link = room.page.locator('article[data-kind=person]').filter({ hasText: 'First of all' }).getByRole('link', { name: 'Link to this message' })
  await room.log.evaluate((log) => log.scrollTo(0, 0))
  const address = await link.last().getAttribute('href')
  expect(address).toMatch(/\?m=\d+$/)
  await room.page.goto(stage.url + address)
  await room.page.locator('article[data-marked]').filter({ hasText: 'First of all' }).waitFor()
})

async function textOfLast(room: RoomView): Promise<string> {
  return room.lastAnswer.locator('p').first().innerText()
}

async function shownTexts(room: RoomView): Promise<string[]> {
  const texts = await room.page.locator('article').allInnerTexts()
  return texts.map((text) => text.replace(/\d+:\d+( [AP]M)?/g, ''))
}
