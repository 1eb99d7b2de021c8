import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { RoomView, firstAgent, numbers } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()
let agent: string
beforeAll(async () => {
  agent = await firstAgent(stage)
})

async function open(name: string, agents = [agent]): Promise<RoomView> {
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name, agents })
  const view = new RoomView(await stage.page(`/rooms/${id}`))
  await view.field.waitFor()
  return view
}

describe('an agent', () => {
  it('adds a message to the current answer', async () => {
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
    await view.button('Always any Bash call').click()
    await view.hears('Always allowed in this room')
    await view.say('!ask Bash {"cmd":"pwd"}')
    await view.answers.nth(1).getByText('allowed').waitFor()
    expect(await view.button(/^Allow$/).count()).toBe(0)
    await view.button('Room actions').click()
    await view.page.getByRole('menuitem', { name: 'Room settings and members' }).click()
    await view.button('Remove').click()
    await view.button('Remove').waitFor({ state: 'detached' })
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
  await view.page.locator('[role=option]').filter({ hasText: 'Beatrice' }).waitFor()
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

describe('files', () => {
  const picture = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAANUlEQVR4nH3CoRGEAADEwCsH/RqNjn6NRkdTOR1kZ3dI3E/iTom7JA6J+0vcLXGPxClxr8QPh7FvVYUIvr4AAAAASUVORK5CYII=', 'base64')
  const notes = { name: 'notes.md', mimeType: 'text/markdown', buffer: Buffer.from('# Notes\n\nof mine\n') }

  it('go along with a message, and pictures are seen', async () => {
    const view = await open('Attach')
    await view.page.locator('input[type=file]').setInputFiles([notes, { name: 'photo.png', mimeType: 'image/png', buffer: picture }])
    const chips = view.page.getByRole('list', { name: 'Attached files' })
    await chips.getByText('notes.md').waitFor()
    await view.say('Please read this')
    const message = view.page.locator('article[data-kind=person]').first()
    const link = message.getByRole('link', { name: 'notes.md' })
    await link.waitFor()
    await message.getByRole('img', { name: 'photo.png' }).waitFor()
    await chips.waitFor({ state: 'detached' })
    // Stored, and not only shown ahead of that.
    await view.page.locator('article[data-kind=person][data-seq]').waitFor()
    await view.page.reload()
    const shown = message.getByRole('img', { name: 'photo.png' })
    await shown.waitFor()
    await view.page.waitForFunction(() => document.querySelector<HTMLImageElement>('article img')?.naturalWidth === 10)
    const saved = await view.page.request.get(new URL((await link.getAttribute('href')) ?? '', view.page.url()).href)
    expect(await saved.text()).toBe('# Notes\n\nof mine\n')
    expect(saved.headers()['content-disposition']).toMatch(/^attachment/)
  })

  it('are enough without a word', async () => {
    const view = await open('Attach only')
    await view.page.locator('input[type=file]').setInputFiles(notes)
    const chip = view.page.getByRole('list', { name: 'Attached files' }).getByText('notes.md')
    await chip.waitFor()
    // They wait for their message while one looks into another room.
    const room = view.page.url()
    await view.page.getByRole('link', { name: /Attach only/ }).waitFor()
    await view.page.keyboard.press('Alt+ArrowDown')
    await view.page.waitForURL((url) => url.href !== room)
    await chip.waitFor({ state: 'detached' })
    await view.page.keyboard.press('Alt+ArrowUp')
    await view.page.waitForURL(room)
    await view.button(/^Send$/).click()
    await view.page.locator('article[data-kind=person]').getByRole('link', { name: 'notes.md' }).waitFor()
    await view.lastAnswer.getByText(/tokens/).waitFor()
  })

  it('can be dropped and pasted', async () => {
    const view = await open('Drop')
    const hand = (kind: 'drop' | 'paste', name: string): Promise<void> =>
      view.page.evaluate(
        ([type, file]) => {
          const data = new DataTransfer()
          data.items.add(new File(['x'], file, { type: 'text/plain' }))
          const field = document.querySelector('textarea')
          const init = { bubbles: true, cancelable: true }
          field?.dispatchEvent(type === 'drop' ? new DragEvent('drop', { ...init, dataTransfer: data }) : new ClipboardEvent('paste', { ...init, clipboardData: data }))
        },
        [kind, name] as const,
      )
    await hand('drop', 'dropped.txt')
    await hand('paste', 'pasted.txt')
    await view.say('Both')
    const message = view.page.locator('article[data-kind=person]').first()
    await message.getByRole('link', { name: 'dropped.txt' }).waitFor()
    await message.getByRole('link', { name: 'pasted.txt' }).waitFor()
  })

  it('show how far they are, say why they failed, and go once more', async () => {
    const view = await open('Retry')
    await view.page.route('**/api/uploads*', (route) => route.abort('connectionfailed'))
    await view.page.locator('input[type=file]').setInputFiles(notes)
    await view.page.getByRole('alert').filter({ hasText: 'The connection was lost' }).waitFor()
    expect(await view.button(/^Send$/).isDisabled()).toBe(true)
    await view.page.unroute('**/api/uploads*')
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await view.page.route('**/api/uploads*', async (route) => {
      await held
      await route.continue()
    })
    await view.button('Retry notes.md').click()
    await view.page.getByRole('progressbar', { name: 'Sending notes.md' }).waitFor()
    await view.say('Sent before the file was there')
    await view.page.getByText('Sends when uploads finish').waitFor()
    release()
    await view.page.locator('article[data-kind=person]').filter({ hasText: 'Sent before' }).getByRole('link', { name: 'notes.md' }).waitFor()
  })

  it('that are too large are refused before they go', async () => {
    const view = await open('Large')
    await view.page.evaluate(() => {
      const dataTransfer = new DataTransfer()
      dataTransfer.items.add(new File([new Uint8Array(25_000_001)], 'film.mp4'))
      document.querySelector('textarea')?.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer }))
    })
    await view.page.getByText('film.mp4 is larger than 25 MB').waitFor()
    expect(await view.page.getByRole('list', { name: 'Attached files' }).count()).toBe(0)
  })
})

it('a skill is completed after a slash, and what its form was told begins the message', async () => {
  const parameters = [
    { name: 'path', type: 'file_path', required: true },
    { name: 'depth', type: 'choice', choices: ['shallow', 'deep'], default: 'shallow' },
  ]
  await stage.server.api('/skills', { name: 'code-review', description: 'Reviews code', body: '# Review {{path}}', parameters })
  const view = await open('Skills')
  await view.field.pressSequentially('/rev')
  await view.page.getByRole('option', { name: /code-review/ }).waitFor()
  await view.field.press('Enter')
  const form = view.page.getByRole('group', { name: 'Parameters of code-review' })
  expect(await form.getByRole('button', { name: 'Insert' }).isDisabled()).toBe(true)
  await form.getByRole('textbox', { name: /path/ }).fill('my code/a.rs')
  await form.getByRole('combobox', { name: /depth/ }).selectOption('deep')
  await form.getByRole('button', { name: 'Insert' }).click()
  expect(await view.field.inputValue()).toBe('/code-review path="my code/a.rs" depth=deep ')
  await view.field.pressSequentially('with care')
  await view.field.press('Enter')
  await view.page.locator('article[data-kind=person]').getByText('/code-review path="my code/a.rs" depth=deep with care').waitFor()
})

it('a diagram is drawn, its text can be shown, and one that cannot be drawn is shown as text', async () => {
  const view = await open('Diagram')
  const parts = ['```mermaid\ngraph TD\n  A["Post (once)"] --> B{Busy?}\n  B -->|no| C[Run]\n```\n\n', '```mermaid\nnonsense\n```']
  await view.say(`!script ${JSON.stringify(parts.map((text) => ({ text })))}`)
  const diagram = view.lastAnswer.getByRole('img', { name: /^Diagram/ })
  await diagram.waitFor()
  const size = await diagram.evaluate((image: HTMLImageElement) => [image.naturalWidth, image.naturalHeight])
  expect(size.every((length) => length > 100)).toBe(true)
  await view.lastAnswer.getByRole('group', { name: 'Code, mermaid' }).getByText('nonsense').waitFor()
  await view.button('Show the text').click()
  await view.lastAnswer.getByRole('region', { name: 'Diagram' }).getByText('A["Post (once)"]').waitFor()
})

it('members are shown, asked in and taken out', async () => {
  const { id } = await stage.server.api<{ id: string }>('/agents', { name: 'Cordelia', provider: 'scripted' })
  const view = await open('Asked in')
  await view.button('Members').click()
  const panel = view.page.getByRole('complementary', { name: 'Members' })
  await panel.getByRole('button', { name: 'Add Cordelia' }).click()
  await panel.getByRole('button', { name: 'Remove Cordelia' }).waitFor()
  await view.say('!hang')
  await panel.getByText('answering', { exact: true }).waitFor()
  await view.page.keyboard.press('Control+.')
  await panel.getByRole('button', { name: 'Remove Cordelia' }).click()
  await panel.getByRole('button', { name: 'Add Cordelia' }).waitFor()
  const room = await stage.server.api<{ agents: string[] }>(`/rooms/${new URL(view.page.url()).pathname.split('/').at(-1)}`)
  expect(room.agents).not.toContain(id)
})

it('a conversation is exported as Markdown and as JSON', async () => {
  const view = await open('Export me')
  await view.say('!count 5')
  await view.hears(numbers(5))
  await view.lastAnswer.getByText(/tokens/).waitFor()
  const save = async (item: string): Promise<{ name: string; text: string }> => {
    const saved = view.page.waitForEvent('download')
    await view.button('Room actions').click()
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
  await page.getByRole('button', { name: 'Create room' }).click()
  await page.getByRole('heading', { name: 'Fresh' }).waitFor()
  await page.getByRole('button', { name: 'Room actions' }).click()
  await page.getByRole('menuitem', { name: 'Room settings and members' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Renamed')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'Renamed' }).waitFor()
  const view = new RoomView(page)
  await view.say('Hi')
  await view.lastAnswer.getByText(/tokens/).waitFor()
  await page.getByRole('button', { name: 'Room actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete this room' }).click()
  await page.getByRole('button', { name: 'Delete room' }).click()
  await page.getByRole('heading', { name: 'Renamed', exact: true }).waitFor({ state: 'detached' })
  await page.getByRole('link', { name: /Renamed/ }).waitFor({ state: 'detached' })
})

it('a dialog gives the focus back to where it was', async () => {
  const view = await open('Focus')
  const dialog = view.page.getByRole('dialog')
  await view.field.fill('Still ')
  await view.page.keyboard.press('Control+k')
  await dialog.getByRole('combobox').waitFor()
  await view.page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await view.page.keyboard.type('here')
  expect(await view.field.inputValue()).toBe('Still here')
  await view.button('Room actions').click()
  await view.page.getByRole('menuitem', { name: 'Room settings and members' }).click()
  // Its button is disabled while it saves, and the focus with it.
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  expect(await view.page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Room actions')
})

it('what happens in another room shows in the list at once, as unread', async () => {
  const view = await open('Where one is')
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Elsewhere', agents: [agent] })
  await view.page.getByRole('link', { name: /Elsewhere/ }).click()
  await view.page.getByRole('heading', { name: 'Elsewhere' }).waitFor()
  await view.page.getByRole('link', { name: /Where one is/ }).click()
  await view.page.getByRole('heading', { name: 'Where one is' }).waitFor()
  // A new page: this one would know of every word in a room that it had open.
  await view.page.reload()
  const line = view.page.getByRole('link', { name: /Elsewhere/ })
  await stage.server.api(`/rooms/${id}/messages`, { text: 'Psst' })
  await line.filter({ hasText: 'You said “Psst”' }).waitFor()
  await line.getByRole('img', { name: 'unread' }).waitFor()
  await stage.server.api(`/rooms/${id}/messages`, { text: '!ask Bash {"cmd":"ls"}' })
  await line.getByRole('img', { name: 'Waiting for you' }).waitFor()
  await line.filter({ hasText: 'Needs your approval' }).waitFor()
  await line.click()
  await line.getByRole('img', { name: 'unread' }).waitFor({ state: 'detached' })
  await view.button('Deny').click()
})

it('rooms made, renamed and deleted elsewhere come, change and go in the list', async () => {
  const view = await open('Lists')
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Made elsewhere', agents: [agent] })
  await view.page.getByRole('link', { name: /Made elsewhere/ }).waitFor()
  await stage.server.send('PATCH', `/rooms/${id}`, { name: 'Renamed elsewhere' })
  await view.page.getByRole('link', { name: /Renamed elsewhere/ }).waitFor()
  await stage.server.send('DELETE', `/rooms/${id}`)
  await view.page.getByRole('link', { name: /Renamed elsewhere/ }).waitFor({ state: 'detached' })
})
