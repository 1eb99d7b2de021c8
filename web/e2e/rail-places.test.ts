import { expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { firstAgent } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

it('rooms are pinned, put into folders, archived and brought back', async () => {
  const agents = [await firstAgent(stage)]
  for (const name of ['Plans', 'Notes', 'Old stuff']) await stage.server.api('/rooms', { name, agents })
  const page = await stage.page('/agents', forms.light)
  const menu = async (room: string, item: string): Promise<void> => {
    await page.getByRole('button', { name: `Actions for ${room}`, exact: true }).click()
    await page.getByRole('menuitem', { name: item, exact: true }).click()
  }
  const rail = page.locator('nav, aside').filter({ has: page.getByRole('searchbox', { name: 'Search rooms' }) }).first()
  const order = async (): Promise<string> => (await rail.innerText()).replaceAll(/\s+/g, ' ')
  await page.locator('[data-room]').first().waitFor()
  await menu('Plans', 'Pin')
  await expect.poll(order).toMatch(/Pinned Plans/)
  await menu('Notes', 'Move to folder')
  await page.getByLabel('Folder', { exact: true }).fill('Work')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await expect.poll(order).toMatch(/Work Notes/)
  await menu('Old stuff', 'Archive')
  await page.getByRole('button', { name: 'Actions for Old stuff', exact: true }).waitFor({ state: 'detached' })
  expect(await inspect(page, 'rail-places', 'light')).toEqual([])
  await page.reload()
  await expect.poll(order).toMatch(/Pinned Plans.*Work Notes/)
  expect(await order()).not.toContain('Old stuff')
  await page.getByRole('button', { name: 'Archived rooms', exact: true }).click()
  await page.getByRole('button', { name: 'Unarchive Old stuff', exact: true }).click()
  await page.getByText('No archived rooms.').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Actions for Old stuff', exact: true }).waitFor()
  await menu('Plans', 'Unpin')
  await expect.poll(order).not.toMatch(/Pinned/)
})
