import { beforeAll, describe, expect, it } from 'vitest'
import { folder, forms, inspect } from './harness/forms'
import { command } from './harness/palette'
import { RoomView } from './harness/room'
import { playEverything, scenes } from './harness/scenes'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()
let everything: string
let empty: string
beforeAll(async () => {
  const { agents } = await stage.server.api<{ agents: { id: string }[] }>('/agents')
  empty = (await stage.server.api<{ id: string }>('/rooms', { name: 'Lobby', agents: [agents[0]?.id] })).id
  everything = await playEverything(stage)
})

describe.each(Object.entries(forms))('in the form %s', (form, options) => {
  it('every page is within its width, without a barrier, and pictured', async () => {
    const barriers: string[] = []
    const page = await stage.page('/', { ...options, reducedMotion: 'reduce' })
    for (const scene of scenes(everything, empty)) {
      if (form === 'wide' && !['room', 'welcome'].includes(scene.name)) continue
      await page.goto(stage.url + scene.path)
      await scene.prepare?.(page)
      barriers.push(...(await inspect(page, scene.name, form, form !== 'wide')))
    }
    expect(barriers).toEqual([])
  })
})

it('the drawer of a phone opens, leads to a room and closes', async () => {
  const page = await stage.page(`/rooms/${empty}`, forms.phone)
  await page.getByRole('button', { name: 'Rooms' }).click()
  await page.waitForTimeout(400)
  await page.screenshot({ path: `${folder}drawer-phone.png` })
  await page.getByRole('link', { name: /Parser review/ }).click()
  await page.getByRole('heading', { name: 'Parser review' }).waitFor()
  await page.getByRole('link', { name: /Lobby/ }).waitFor({ state: 'hidden' })
  const field = new RoomView(page).field
  const box = await field.boundingBox()
  expect(box && box.x >= 0 && box.x + box.width <= 360).toBe(true)
})

it('the theme can be chosen and is remembered', async () => {
  const page = await stage.page(`/rooms/${empty}`, { colorScheme: 'light' })
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  const light = await ground()
  await page.getByRole('button', { name: /^Appearance/ }).click()
  await page.getByRole('button', { name: /^Appearance/ }).click()
  const dark = await ground()
  expect(dark).not.toBe(light)
  await page.reload()
  expect(await ground()).toBe(dark)
})

it('everything can be done by keyboard', async () => {
  const page = await stage.page(`/rooms/${everything}`)
  const room = new RoomView(page)
  await room.button(/^Allow$/).waitFor()
  await room.field.focus()
  for (let i = 0; i < 40; i += 1) {
    await page.keyboard.press('Shift+Tab')
    if (await room.button('Deny').evaluate((button) => button === document.activeElement)) break
  }
  await page.keyboard.press('Enter')
  await room.hears('Denied')
  await command(page, 'lobby', /^Lobby/)
  await page.getByRole('heading', { name: 'Lobby' }).waitFor()
  await page.waitForFunction(() => document.activeElement?.tagName === 'TEXTAREA')
  await page.keyboard.type('Typed without a mouse')
  await page.keyboard.press('Shift+Enter')
  await page.keyboard.type('on two lines')
  await page.keyboard.press('Enter')
  await room.hears('Typed without a mouse')
  await page.keyboard.press('Alt+ArrowDown')
  await page.getByRole('heading', { name: 'Parser review' }).waitFor()
})
