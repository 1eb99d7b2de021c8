import { expect, it } from 'vitest'
import { openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()
const count = 1200

it(
  'a link to an early message of a long room takes two pages, and what lies between is loaded on the way down',
  async () => {
    const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Long', agents: [] })
    let early = 0
    for (let number = 1; number <= count; number += 1) {
      const { message } = await stage.server.api<{ message: { seq: number } }>(`/rooms/${id}/messages`, { text: `Message number ${number}` })
      if (number === 10) early = message.seq
    }
    const context = await stage.browser({ viewport: { width: 1280, height: 800 } })
    const page = await context.newPage()
    const pages: string[] = []
    page.on('request', (request) => request.url().includes('/messages?') && pages.push(request.url()))
    await page.goto(`${stage.url}/rooms/${id}?m=${early}`)
    await page.getByText('Message number 10', { exact: true }).waitFor()
    expect(pages.length, pages.map((url) => url.split('?')[1]).join(' ')).toBe(2)
    await page.getByText('Message number 12', { exact: true }).waitFor()

    // Further down, nothing is missing.
    const log = page.getByRole('log')
    for (let step = 0; step < 30; step += 1) {
      await log.evaluate((element) => element.scrollBy(0, 1500))
      await page.waitForTimeout(60)
    }
    const shown = (await log.innerText()).match(/Message number (\d+)/g)?.map((text) => Number(text.replace(/\D/g, ''))) ?? []
    expect(shown.length).toBeGreaterThan(3)
    expect(shown).toEqual(shown.map((_, index) => (shown[0] ?? 0) + index))
    expect(shown[0]).toBeGreaterThan(60)
  },
  240_000,
)

it('a question is asked again of another agent, and the composer sends to one', async () => {
  const names = ['Ada', 'Bob']
  const made = await Promise.all(names.map((name) => stage.server.api<{ id: string }>('/agents', { name, provider: 'scripted' })))
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Two', agents: made.map((agent) => agent.id) })
  const page = await stage.page(`/rooms/${id}`)
  await page.getByLabel('Who answers', { exact: true }).selectOption({ label: 'Bob' })
  await page.getByRole('textbox', { name: 'Message' }).fill('!count 3')
  await page.keyboard.press('Enter')
  await page.getByText('1 2 3').first().waitFor()
  const answers = page.locator('article[data-kind=answer]')
  expect(await answers.count()).toBe(1)
  await answers.first().hover()
  await answers.first().getByRole('button', { name: 'Ask again' }).click()
  await page.getByRole('menuitem', { name: 'Ask Ada' }).click()
  await answers.nth(1).waitFor()
  expect(await answers.nth(1).innerText()).toContain('Ada')
})

it('an interruption says what it drops', async () => {
  const room = await openRoom(stage, 'Busy', { policy: { when_busy: 'enqueue' } })
  await room.say('!hang')
  await room.page.getByText('Hanging').first().waitFor()
  await room.say('!count 2')
  await room.page.getByText('Next up').waitFor()
  await room.page.getByText('Interrupt', { exact: true }).click()
  await room.page.getByText('Stops the current answer and drops 1 queued message').first().waitFor()
  await room.page.getByRole('button', { name: 'Stop', exact: true }).click()
})
