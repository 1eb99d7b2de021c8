import { expect, it } from 'vitest'
import { firstAgent, openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()
const answering = (text: string): string => `!script ${JSON.stringify([{ text }])}`

it('files of the project are completed after an @, folder by folder', async () => {
  const { id } = await stage.server.api<{ id: string }>('/projects', { name: 'Site' })
  for (const path of ['src/pages/index.html', 'src/main.py', 'README.md']) {
    await stage.server.fetch(`/projects/${id}/files/content?path=${encodeURIComponent(path)}`, { method: 'PUT', body: 'x' })
  }
  const room = await openRoom(stage, 'With files', { agents: [await firstAgent(stage)], project_id: id })
  await room.field.click()
  await room.page.keyboard.type('Look at @')
  const list = room.page.getByRole('listbox', { name: 'Agents and files' })
  await list.getByRole('option', { name: 'README.md', exact: true }).waitFor()
  await list.getByRole('option', { name: 'src/', exact: true }).click()
  await list.getByRole('option', { name: /^main\.py/ }).waitFor()
  await room.page.keyboard.type('ma')
  await room.page.keyboard.press('Enter')
  expect(await room.field.inputValue()).toBe('Look at @src/main.py ')
})

it('a picture from elsewhere is a link: nothing is requested until somebody clicks', async () => {
  const room = await openRoom(stage, 'Pictures')
  const requested: string[] = []
  room.page.on('request', (request) => requested.push(request.url()))
  const text = '![cat](https://pictures.example.org/cat.png) and <img src="https://pictures.example.org/dog.png"> and ![bird][b]\n\n[b]: https://pictures.example.org/bird.png'
  await room.say(answering(text))
  await room.lastAnswer.getByRole('link', { name: 'cat', exact: true }).waitFor()
  await room.page.waitForTimeout(500)
  expect(await room.log.locator('img').count()).toBe(0)
  expect(requested.filter((url) => url.includes('pictures.example.org'))).toEqual([])
})

it('text of people and agents has the direction of its script', async () => {
  const room = await openRoom(stage, 'שלום')
  await room.say(answering('مرحبا بالعالم.'))
  await room.hears('مرحبا')
  const direction = await room.lastAnswer.getByText('مرحبا بالعالم.').evaluate((element) => getComputedStyle(element).direction)
  expect(direction).toBe('rtl')
  expect(await room.page.getByRole('heading', { name: 'שלום', level: 1 }).evaluate((element) => getComputedStyle(element).direction)).toBe('rtl')
  const own = await room.page.locator('article[data-kind=person]').getByText('!script').evaluate((element) => getComputedStyle(element).direction)
  // It begins with Latin letters.
  expect(own).toBe('ltr')
})
