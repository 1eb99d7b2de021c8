import { expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { RoomView, firstAgent, openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

const questions = { questions: [{ question: 'Which library?', options: [{ label: 'React' }, { label: 'Solid', description: 'The small one' }] }, { question: 'Which port?', options: [] }] }

async function ask(name: string, text: string): Promise<string> {
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name, agents: [await firstAgent(stage)] })
  await stage.server.api(`/rooms/${id}/messages`, { text })
  return id
}

it('what waits in any room is counted, listed and answered in one place', async () => {
  const page = await stage.page('/settings')
  await ask('First', '!ask Bash {"cmd":"ls -l"}')
  await ask('Second', `!script ${JSON.stringify([{ approval: { id: 't1', name: 'AskUserQuestion', input: questions, is_question: true } }])}`)
  await page.waitForFunction(() => document.title.startsWith('(2) '))
  await page.getByRole('link', { name: /Approvals.*2 waiting/s }).click()
  const list = page.getByRole('list', { name: 'Waiting for you' })
  await list.getByText('Allow scripted to run Bash?').waitFor()
  await list.getByText('Which library?', { exact: true }).waitFor()
  for (const form of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: form })
    expect(await inspect(page, 'approvals', form)).toEqual([])
  }
  await list.getByRole('button', { name: /^Allow$/ }).click()
  await list.getByText('Allow scripted to run Bash?').waitFor({ state: 'detached' })
  await list.getByRole('button', { name: 'Solid' }).click()
  await list.getByLabel('Which port?').fill('8080')
  await list.getByRole('button', { name: 'Send answers' }).click()
  await page.getByText('Nothing is waiting for you.').waitFor()
  await page.waitForFunction(() => !document.title.startsWith('('))
})

it('b1_each_question_got_its_own_answer_and_the_room_says_so', async () => {
  const id = await ask('Questions', `!script ${JSON.stringify([{ approval: { id: 't1', name: 'AskUserQuestion', input: questions, is_question: true } }])}`)
  const view = new RoomView(await stage.page(`/rooms/${id}`, forms.phone))
  await view.page.getByText('Which library?', { exact: true }).waitFor()
  expect(await inspect(view.page, 'questions', 'phone')).toEqual([])
  await view.button('React').click()
  await view.page.getByLabel('Which port?').fill('80')
  await view.button('Send answers').click()
  await view.page.getByText('Answered: React; 80').waitFor()
})

it('an approval is answered by a key', async () => {
  const view = await openRoom(stage, 'Keys')
  await view.say('!ask Bash {"cmd":"ls"}')
  await view.button(/^Allow$/).waitFor()
  // Not while someone types.
  await view.field.press('y')
  expect(await view.field.inputValue()).toBe('y')
  await view.log.focus()
  await view.page.keyboard.press('y')
  await view.hears('Allowed')
})

it('b5_a_long_command_wraps_on_a_phone', async () => {
  const id = await ask('Long', `!ask Bash ${JSON.stringify({ command: `cargo test --workspace ${'--features something/very-long '.repeat(12)}` })}`)
  const view = new RoomView(await stage.page(`/rooms/${id}`, forms.phone))
  const code = view.page.getByRole('group', { name: 'Code, bash' })
  await code.waitFor()
  expect(await code.evaluate((pre) => pre.scrollWidth <= pre.clientWidth)).toBe(true)
})

it('the browser tells of an approval while nobody looks, where that is switched on', async () => {
  const context = await stage.browser({ permissions: ['notifications'] })
  const page = await context.newPage()
  await page.addInitScript(() => {
    const shown: string[] = []
    Object.assign(globalThis, { shown })
    class Told extends EventTarget {
      static permission = 'granted'
      static requestPermission = (): Promise<string> => Promise.resolve('granted')
      constructor(title: string, { body }: { body: string }) {
        super()
        shown.push(`${title}: ${body}`)
      }
    }
    Object.assign(globalThis, { Notification: Told })
    Object.defineProperty(document, 'hidden', { get: () => true })
  })
  await page.goto(`${stage.url}/settings`)
  await page.getByLabel('Show browser notifications').check()
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Told', agents: [await firstAgent(stage)] })
  await page.getByRole('link', { name: /Told/ }).waitFor()
  await stage.server.api(`/rooms/${id}/messages`, { text: '!ask Bash {"cmd":"ls"}' })
  await page.waitForFunction(() => (globalThis as unknown as { shown: string[] }).shown.includes('Told: An agent needs your approval'))
})
