import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { RoomView, numbers } from './harness/room'
import { Stage } from './harness/stage'

let stage: Stage
let agent: string
beforeAll(async () => {
  stage = await Stage.open()
  const { agents } = await stage.server.api<{ agents: { id: string }[] }>('/agents')
  agent = agents[0]?.id ?? ''
})
afterEach(() => stage.closeBrowsers())
afterAll(async () => {
  await stage.close()
  expect(stage.complaints).toEqual([])
})

async function open(name: string, agents = [agent]): Promise<RoomView> {
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name, agents })
  const view = new RoomView(await stage.page(`/rooms/${id}`))
  await view.field.waitFor()
  return view
}

describe('an agent', () => {
  it('takes a message into the answer under way', async () => {
    const view = await open('Steer')
    await view.say('!count 60 50')
    await view.hears('1 2 3')
    await view.page.getByText('Steer', { exact: true }).last().click()
    await view.say('Mind the gap')
    await view.answers.first().filter({ hasText: '[steered: Mind the gap]' }).waitFor()
    await view.answers.first().getByText(/tokens/).waitFor()
    expect(await view.answers.count()).toBe(1)
  })

  it('asks a person something, who chooses or writes', async () => {
    const view = await open('Question')
    const ask = (question: string): string => {
      const asked = { name: 'ask_user', input: { question, options: ['Red', 'Blue'] } }
      return `!script ${JSON.stringify([{ tool_use: { id: 'q', ...asked } }, { approval: { id: 'q', ...asked, is_question: true } }, { text: 'Thanks.' }])}`
    }
    await view.say(ask('Which colour?'))
    await view.button('Blue').click()
    await view.hears(/Answered: Blue.*Thanks/s)
    await view.say(ask('Which one, really?'))
    const field = view.page.getByRole('textbox', { name: 'Which one, really?' })
    await field.fill('Green, if there is any')
    await field.press('Enter')
    await view.hears('Answered: Green, if there is any')
    await view.page.reload()
    await view.page.getByText('Answered: Blue').waitFor()
  })

  it('is allowed a tool once and for all, until that is taken back', async () => {
    const view = await open('Always')
    await view.say('!ask Bash {"cmd":"ls"}')
    await view.button('Always in this room').click()
    await view.hears('from now on without asking')
    await view.say('!ask Bash {"cmd":"pwd"}')
    await view.answers.nth(1).getByText('allowed').waitFor()
    expect(await view.button(/^Allow$/).count()).toBe(0)
    await view.button('More about this room').click()
    await view.page.getByRole('menuitem', { name: 'Room settings and members' }).click()
    await view.button('Ask again').click()
    await view.button('Ask again').waitFor({ state: 'detached' })
    await view.button('Close').click()
    await view.say('!ask Bash {"cmd":"pwd"}')
    await view.button(/^Allow$/).click()
    await view.answers.nth(2).getByText('Allowed', { exact: true }).waitFor()
  })
})

it('only the agent that is named answers, and its name is completed', async () => {
  const second = await stage.server.api<{ id: string }>('/agents', { name: 'Beatrice', provider: 'scripted' })
  const view = await open('Two', [agent, second.id])
  await view.field.pressSequentially('Hello @be')
  await view.page.getByRole('option', { name: 'Beatrice' }).waitFor()
  await view.field.press('Enter')
  expect(await view.field.inputValue()).toBe('Hello @Beatrice ')
  await view.field.pressSequentially('there')
  await view.field.press('Enter')
  await view.lastAnswer.getByText(/tokens/).waitFor()
  expect(await view.answers.count()).toBe(1)
  await view.lastAnswer.getByText('Beatrice', { exact: true }).waitFor()
  await view.say('Hello both')
  await view.answers.nth(2).getByText(/tokens/).waitFor()
})

it('a text file goes along inside the message; another file is refused with a reason', async () => {
  const view = await open('Attach')
  const picker = view.page.locator('input[type=file]')
  await picker.setInputFiles({ name: 'notes.md', mimeType: 'text/markdown', buffer: Buffer.from('# Notes\n\nof mine\n') })
  await view.page.getByText('notes.md').waitFor()
  await picker.setInputFiles({ name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from([0x89, 0x50, 0, 0xff, 0xfe]) })
  await view.page.getByText('photo.png is not a text').waitFor()
  await view.say('Please read this')
  const message = view.page.locator('article[data-kind=person]').first()
  await message.getByText('of mine').waitFor()
  await message.getByText('notes.md:').waitFor()
})

it('a conversation is exported as Markdown and as JSON', async () => {
  const view = await open('Export me')
  await view.say('!count 5')
  await view.hears(numbers(5))
  await view.lastAnswer.getByText(/tokens/).waitFor()
  const save = async (item: string): Promise<{ name: string; text: string }> => {
    const saved = view.page.waitForEvent('download')
    await view.button('More about this room').click()
    await view.page.getByRole('menuitem', { name: item }).click()
    const file = await saved
    return { name: file.suggestedFilename(), text: readFileSync(await file.path(), 'utf8') }
  }
  const markdown = await save('Export as Markdown')
  expect(markdown.name).toBe('Export-me.md')
  expect(markdown.text).toContain('# Export me')
  expect(markdown.text).toContain(numbers(5))
  const json = JSON.parse((await save('Export as JSON')).text) as { messages: { text: string }[] }
  expect(json.messages.map((message) => message.text)).toEqual(['!count 5', numbers(5)])
})

it('a room is made, renamed and deleted', async () => {
  const page = await stage.page('/')
  await page.getByRole('button', { name: 'New room' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Fresh')
  await page.getByRole('button', { name: 'Make the room' }).click()
  await page.getByRole('heading', { name: 'Fresh' }).waitFor()
  await page.getByRole('button', { name: 'More about this room' }).click()
  await page.getByRole('menuitem', { name: 'Room settings and members' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Renamed')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'Renamed' }).waitFor()
  const view = new RoomView(page)
  await view.say('Hi')
  await view.lastAnswer.getByText(/tokens/).waitFor()
  await page.getByRole('button', { name: 'More about this room' }).click()
  await page.getByRole('menuitem', { name: 'Delete this room' }).click()
  await page.getByRole('button', { name: 'Delete the room' }).click()
  await page.getByRole('heading', { name: 'Renamed', exact: true }).waitFor({ state: 'detached' })
  expect(await page.getByRole('link', { name: /Renamed/ }).count()).toBe(0)
})

it('what is said in another room shows in the list at once, as unread', async () => {
  const view = await open('Where one is')
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Elsewhere', agents: [agent] })
  await view.page.reload()
  await view.page.getByRole('link', { name: /Elsewhere/ }).click()
  await view.page.getByRole('heading', { name: 'Elsewhere' }).waitFor()
  await view.page.getByRole('link', { name: /Where one is/ }).click()
  await view.page.getByRole('heading', { name: 'Where one is' }).waitFor()
  await stage.server.api(`/rooms/${id}/messages`, { text: 'Psst' })
  await view.page.getByRole('link', { name: /Elsewhere.*You said “Psst”.*1 unread/s }).waitFor()
  await view.page.getByRole('link', { name: /Elsewhere/ }).click()
  await view.page.getByText('1 unread').waitFor({ state: 'detached' })
})
