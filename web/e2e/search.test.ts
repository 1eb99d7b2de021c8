import { expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

async function sayIn(name: string, ...texts: string[]): Promise<string> {
  const room = await openRoom(stage, name)
  for (const text of texts) {
    await room.say(text)
    await room.log.getByText(text, { exact: true }).first().waitFor()
  }
  return room.page.url().split('/').at(-1) ?? ''
}

/** The index is written a moment after the message. */
async function isFound(words: string): Promise<void> {
  await expect.poll(async () => (await stage.server.api<{ hits: unknown[] }>(`/search?q=${encodeURIComponent(words)}`)).hits.length, { timeout: 20_000 }).toBeGreaterThan(0)
}

it.each(['light', 'dark', 'phone'] as const)('a message is found by its words, which are marked, and jumped to, in the form %s', async (form) => {
  const id = await sayIn(`Parser ${form}`, `The ${form} parser loses the last frame`, 'Something else')
  await isFound(`${form} frame`)
  const page = await stage.page('/search', forms[form])
  await page.getByRole('searchbox', { name: 'Search messages, rooms, agents and files' }).fill(`${form} frame`)
  const hits = page.getByRole('list', { name: 'Results' })
  await hits.getByText('parser loses the last').first().waitFor()
  expect(await hits.locator('mark').allInnerTexts()).toEqual(expect.arrayContaining([form, 'frame']))
  expect(page.url()).toContain(`q=${form}`)
  expect(await inspect(page, 'search', form)).toEqual([])
  await hits.getByRole('link').first().click()
  await page.waitForURL(new RegExp(`/rooms/${id}\\?m=`))
  await page.locator('article[data-marked]').getByText('loses the last frame').waitFor()
})

it('the palette finds messages, and leads to all of them', async () => {
  await sayIn('Zebra talk', 'A zebra crossed the road')
  await isFound('zebra crossed')
  const page = await stage.page('/agents')
  await page.getByRole('heading', { name: 'Agents', level: 1, exact: true }).waitFor()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('zebra cros')
  const options = page.getByRole('listbox', { name: 'Commands' }).getByRole('option')
  await options.filter({ hasText: 'A zebra crossed the road' }).first().waitFor()
  expect(await inspect(page, 'palette-messages', 'light')).toEqual([])
  await options.filter({ hasText: 'Search everything for' }).click()
  await page.getByRole('heading', { name: 'Search', level: 1, exact: true }).waitFor()
  await page.getByRole('list', { name: 'Results' }).getByRole('link', { name: /zebra crossed/ }).first().click()
  await page.locator('article[data-marked]').waitFor()
})
