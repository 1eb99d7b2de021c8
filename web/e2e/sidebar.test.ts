import { expect, it } from 'vitest'
import { inspect } from './harness/forms'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()
const patience = 240_000

const room = async (name: string): Promise<string> => {
  const { agents } = await stage.server.api<{ agents: { id: string }[] }>('/agents')
  return (await stage.server.api<{ id: string }>('/rooms', { name, agents: [agents[0]?.id] })).id
}

it(
  'b8_a_room_whose_answer_failed_says_so_in_the_list_without_being_opened',
  async () => {
    const [quiet, failed] = [await room('Quiet'), await room('Broken')]
    await stage.server.api(`/rooms/${failed}/messages`, { text: '!fail over_loaded Try later' })
    const page = await stage.page(`/rooms/${quiet}`)
    const line = page.getByRole('link', { name: /Broken/ })
    await line.getByRole('img', { name: 'Last answer failed' }).waitFor()
    await page.reload()
    await line.getByRole('img', { name: 'Last answer failed' }).waitFor()
  },
  patience,
)

it(
  'a room is renamed in its place and deleted, by the keyboard alone',
  async () => {
    const id = await room('Draft name')
    const page = await stage.page(`/rooms/${id}`)
    const line = page.getByRole('link', { name: /Draft name/ })
    await line.focus()
    await page.keyboard.press('F2')
    await page.getByLabel('Name of Draft name').waitFor()
    await page.keyboard.type('Final name')
    await page.keyboard.press('Enter')
    const renamed = page.getByRole('link', { name: /Final name/ })
    await renamed.waitFor()
    await page.getByRole('heading', { name: 'Final name' }).waitFor()

    await renamed.focus()
    await page.keyboard.press('F2')
    await page.keyboard.type('Never')
    await page.keyboard.press('Escape')
    await renamed.waitFor()

    await renamed.focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('menu', { name: 'Actions for Final name' }).waitFor()
    expect(await inspect(page, 'room-menu', 'light')).toEqual([])
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete room' }).click()
    await renamed.waitFor({ state: 'detached' })
  },
  patience,
)

it(
  '318 rooms are grouped, searched and drawn as a few lines',
  async () => {
    for (let first = 0; first < 318; first += 20) {
      await Promise.all(Array.from({ length: Math.min(20, 318 - first) }, (_, index) => room(`Room number ${first + index}`)))
    }
    const target = await room('Quarterly report')
    const page = await stage.page(`/rooms/${target}`)
    await page.getByRole('link', { name: /Quarterly report/ }).waitFor()
    await page.getByText('Today', { exact: true }).first().waitFor()
    expect(await page.locator('nav li').count()).toBeLessThan(60)
    expect(await inspect(page, 'sidebar', 'light')).toEqual([])

    await page.getByLabel('Search rooms').fill('qrtly')
    await page.getByRole('link', { name: /Room number/ }).first().waitFor({ state: 'detached' })
    await page.getByRole('link', { name: /Quarterly report/ }).waitFor()
    await page.getByLabel('Search rooms').fill('nothing of the kind')
    await page.getByText('No rooms match').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: /Room number/ }).first().waitFor()

    // Both of what can be done and of where one can go is found by letters.
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('qrtly')
    await page.getByRole('option', { name: /Quarterly report/ }).waitFor()
    await page.getByRole('combobox').fill('rstngs')
    await page.getByRole('option', { name: /Room settings/ }).waitFor()
  },
  patience,
)
