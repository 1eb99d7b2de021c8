import { beforeAll, expect, it } from 'vitest'
import { AgentsView, makeAgent, openAgents } from './harness/agents'
import { command } from './harness/palette'
import { RoomView, numbers } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()
beforeAll(async () => {
  await makeAgent(stage, 'Runner')
})

async function ask(): Promise<AgentsView> {
  const view = await openAgents(stage)
  await view.button('Run a task with Runner').click()
  return view
}

it('a task is done before one’s eyes, counted, and kept in a room', async () => {
  const view = await ask()
  await view.run('!count 40 50')
  await view.dialog.getByText('1 2 3').waitFor()
  await view.dialog.getByRole('progressbar').waitFor()
  await view.dialog.getByText(numbers(40)).waitFor()
  await view.dialog.getByText('is done').waitFor()
  const figures = view.dialog.locator('dl')
  for (const figure of ['Time', 'Tokens', 'Cost']) await figures.getByText(figure, { exact: true }).waitFor()
  await view.dialog.getByRole('link', { name: 'Open its room' }).click()
  await view.dialog.waitFor({ state: 'detached' })
  await new RoomView(view.page).hears(numbers(40))
})

it('a task is stopped, and says so when it has', async () => {
  const view = await ask()
  await view.run('!count 500 20')
  await view.dialog.getByText('1 2 3').waitFor()
  await view.dialog.getByRole('button', { name: 'Stop' }).click()
  await view.dialog.getByText('was stopped', { exact: true }).waitFor()
  await view.dialog.locator('dl').getByText('Time', { exact: true }).waitFor()
  await view.dialog.getByRole('button', { name: 'Another task' }).click()
  expect(await view.dialog.getByLabel('Task').last().inputValue()).toBe('!count 500 20')
})

it('asks for a yes in the middle, and fails with what to do', async () => {
  const view = await ask()
  await view.run('!ask Bash {"cmd":"ls"}')
  await view.dialog.getByRole('region', { name: 'May it use Bash?' }).getByText('"cmd": "ls"').waitFor()
  await view.dialog.getByRole('button', { name: 'Allow' }).click()
  await view.dialog.getByText('is done').waitFor()
  await view.dialog.getByText('allowed').waitFor()
  await view.dialog.getByRole('button', { name: 'Another task' }).click()
  await view.run('!fail over_loaded The model is over capacity; try again in a minute.')
  await view.dialog.getByRole('alert').filter({ hasText: 'The model is over capacity' }).waitFor()
})

it('goes on in its room when one leaves', async () => {
  const view = await ask()
  await view.run('!count 60 50')
  await view.dialog.getByText('1 2 3').waitFor()
  await view.dialog.getByRole('button', { name: 'Run in background' }).click()
  await view.dialog.waitFor({ state: 'detached' })
  const { runs } = await stage.server.api<{ runs: { id: string; room_id: string }[] }>('/runs?limit=1')
  await view.page.goto(`${stage.url}/rooms/${runs[0]?.room_id}`)
  await new RoomView(view.page).hears(numbers(60))
})

it('is followed to its end when the server goes down in the middle', async () => {
  const view = await ask()
  await view.page.clock.install()
  await view.page.reload()
  await view.button('Run a task with Runner').click()
  await view.run('!count 500 20')
  await view.dialog.getByText('1 2 3').waitFor()
  await stage.server.kill()
  // A proxy may keep the line open though nobody is behind it any more: then silence tells.
  await view.page.clock.fastForward(60_000)
  await view.dialog.getByText('The connection broke.').waitFor()
  await stage.server.up()
  await view.dialog.getByText('was stopped', { exact: true }).waitFor()
  await view.dialog.getByRole('link', { name: 'Open its room' }).click()
  await new RoomView(view.page).lastAnswer.getByText('The server restarted while this was running').waitFor()
})

it('is reached from a room’s menu, the palette and a key', async () => {
  const { agents } = await stage.server.api<{ agents: { id: string; name: string }[] }>('/agents')
  const runner = agents.find((agent) => agent.name === 'Runner')
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'With a menu', agents: [runner?.id] })
  const page = await stage.page(`/rooms/${id}`)
  const view = new AgentsView(page)
  await page.getByRole('button', { name: 'Room actions' }).click()
  await page.getByRole('menuitem', { name: 'Run a task with an agent here' }).click()
  await view.dialog.getByText('Runner runs it once').waitFor()
  await page.keyboard.press('Escape')
  await view.dialog.waitFor({ state: 'detached' })
  await command(page, 'task with runner', /^Run a task with Runner/)
  await view.run('!count 3')
  await view.dialog.getByText('is done').waitFor()
  await view.dialog.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('log').or(page.getByRole('main')).first().focus()
  await page.keyboard.press('x')
  await view.dialog.getByLabel('Agent').waitFor()
})

it('an agent is made and given a task by keyboard alone', async () => {
  const page = await stage.page('/')
  const view = new AgentsView(page)
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
  await command(page, 'new agent', /^New agent/)
  await view.heading('New agent').waitFor()
  await tabTo(view, () => view.field('Name'))
  await page.keyboard.press('Control+a')
  await page.keyboard.type('Typist')
  await tabTo(view, () => view.section('Tools'))
  await page.keyboard.press('Enter')
  await tabTo(view, () => view.field('Always allow'))
  await page.keyboard.type('Read')
  await page.keyboard.press('Enter')
  await page.keyboard.type('Grep,')
  await page.keyboard.press('Backspace')
  await page.keyboard.type('x')
  await page.keyboard.press('Control+s')
  await view.heading('Typist').waitFor()
  await page.getByRole('button', { name: 'Change Grepx' }).waitFor()
  await command(page, 'task with typist', /^Run a task with Typist/)
  await view.dialog.getByText('Typist runs it once').waitFor()
  await page.keyboard.type('!count 4')
  await page.keyboard.press('Control+Enter')
  await view.dialog.getByText('is done').waitFor()
  await page.keyboard.press('Escape')
  await view.dialog.waitFor({ state: 'detached' })
})

async function tabTo(view: AgentsView, target: () => ReturnType<AgentsView['field']>): Promise<void> {
  for (let presses = 0; presses < 80; presses += 1) {
    if (await target().evaluate((element) => element === document.activeElement)) return
    await view.page.keyboard.press('Tab')
  }
  throw new Error('Tab does not lead there')
}
