import { expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { RoomView, firstAgent, openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

it('a new chat is one key away, with the last agent, and titled by its first message', async () => {
  const view = await openRoom(stage, 'Before')
  await view.say('Hello')
  await view.hears('Hello')
  await view.page.keyboard.press('Control+Shift+O')
  await view.page.getByRole('heading', { name: 'New chat' }).waitFor()
  await view.page.waitForFunction(() => document.activeElement?.tagName === 'TEXTAREA')
  await view.say('Fix the parser that loses frames')
  await view.hears('Fix the parser')
  await view.page.getByRole('heading', { name: 'Fix the parser that loses frames' }).waitFor()
})

it('messages have their day, and can be quoted, changed and sent again', async () => {
  const view = await openRoom(stage, 'Edit')
  await view.say('Say one')
  await view.hears('Say one')
  expect(await view.log.getByText('Today').count()).toBe(1)
  const own = view.page.locator('article[data-kind=person]').first()
  await own.hover()
  await own.getByRole('button', { name: 'Edit and resend' }).click()
  expect(await view.field.inputValue()).toBe('Say one')
  await view.field.fill('Say two')
  await view.field.press('Enter')
  await view.hears('Say two')
  await view.field.press('ArrowUp')
  expect(await view.field.inputValue()).toBe('Say two')
  await view.field.fill('')
  await view.lastAnswer.hover()
  await view.lastAnswer.getByRole('button', { name: 'Quote' }).click()
  expect(await view.field.inputValue()).toMatch(/^> .*Say two/)
})

it('journal numbers are for developers only', async () => {
  const view = await openRoom(stage, 'Numbers')
  await view.say('Hello')
  await view.hears('Hello')
  expect(await view.page.getByText('Journal position').count()).toBe(0)
  expect(await view.button('Show events').count()).toBe(0)
  await view.page.goto(`${stage.url}/settings`)
  await view.page.getByLabel('Show journal numbers, positions and raw events in rooms').check()
  await view.page.goBack()
  await view.page.getByText('Journal position').waitFor({ state: 'attached' })
})

it('b20_b21_a_file_dropped_anywhere_is_attached_and_is_there_after_a_reload', async () => {
  const view = await openRoom(stage, 'Drop')
  await view.say('Hello')
  await view.hears('Hello')
  const files = await view.page.evaluateHandle(() => {
    const data = new DataTransfer()
    data.items.add(new File(['a,b\n1,2\n'], 'table.csv', { type: 'text/csv' }))
    return data
  })
  await view.log.dispatchEvent('drop', { dataTransfer: files })
  const chips = view.page.getByRole('list', { name: 'Attached files' })
  await chips.getByText('8 B').waitFor()
  await view.page.reload()
  await chips.getByText('table.csv').waitFor()
  await view.say('Read this')
  await view.page.locator('article[data-kind=person]').last().getByText('table.csv').waitFor()
  expect(await chips.count()).toBe(0)
})

it('b33_a_room_without_agents_says_that_nobody_answers', async () => {
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Nobody', agents: [] })
  const page = await stage.page(`/rooms/${id}`)
  await page.getByText('No agents in this room, so nobody answers.').waitFor()
  await page.getByRole('button', { name: 'Add an agent' }).click()
  await page.getByRole('button', { name: 'Add scripted' }).click()
  await page.getByText('No agents in this room, so nobody answers.').waitFor({ state: 'detached' })
})

it('b35_on_a_phone_enter_begins_a_new_line_and_the_button_sends', async () => {
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Phone', agents: [await firstAgent(stage)] })
  const view = new RoomView(await stage.page(`/rooms/${id}`, forms.phone))
  await view.field.click()
  await view.page.keyboard.type('one')
  await view.page.keyboard.press('Enter')
  await view.page.keyboard.type('two')
  expect(await view.field.inputValue()).toBe('one\ntwo')
  await view.button('Send').click()
  await view.hears('one')
})

const rich = [
  'Inline \\(x^2 + y^2\\) and $\\frac{a}{b}$, which costs $5 or $10.',
  '$$\\begin{pmatrix}1 & 2 \\\\ 3 & 4\\end{pmatrix}$$',
  'שלום עולם. זה טקסט בעברית.',
  '| Name of the thing | Quantity | Where it is |\n|---|---:|---|\n| Parallelepiped | 200 000 | Warehouse-number-seven |',
].join('\n\n')

it.each(['light', 'dark', 'phone'] as const)('b16_b17_b18_formulas_tables_and_other_scripts_read_well_in_the_form_%s', async (form) => {
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'חדר עברי', agents: [await firstAgent(stage)] })
  await stage.server.api(`/rooms/${id}/messages`, { text: `!script ${JSON.stringify([{ text: rich }])}` })
  const view = new RoomView(await stage.page(`/rooms/${id}`, forms[form]))
  await view.lastAnswer.locator('math').nth(2).waitFor()
  expect(await view.lastAnswer.locator('math').count()).toBe(3)
  expect(await view.lastAnswer.innerText()).toContain('costs $5 or $10')
  const hebrew = view.lastAnswer.getByText('שלום עולם')
  expect(await hebrew.evaluate((text) => getComputedStyle(text).direction)).toBe('rtl')
  // Words stay whole: each cell is one line high, and the table scrolls inside.
  const heights = await view.lastAnswer.locator('td').evaluateAll((cells) => cells.map((cell) => [...cell.childNodes].length > 0 && cell.getBoundingClientRect().width))
  const word = await view.lastAnswer.getByText('Parallelepiped').evaluate((cell) => {
    const range = document.createRange()
    range.selectNodeContents(cell)
    return range.getClientRects().length
  })
  expect(word).toBe(1)
  expect(heights.every(Boolean)).toBe(true)
  expect(await inspect(view.page, 'rich-text', form)).toEqual([])
})

it('code can be wrapped, collapsed and downloaded', async () => {
  const view = await openRoom(stage, 'Code')
  const code = '```rust\nfn main() { println!("{}", "a long line ".repeat(40)); let x = 1; let y = 2; let z = 3; let w = 4; let v = 5; }\n```'
  await view.say(`!script ${JSON.stringify([{ text: code }])}`)
  const block = view.lastAnswer.getByRole('group', { name: 'Code, rust' })
  await block.waitFor()
  const isWide = () => block.evaluate((pre) => pre.scrollWidth > pre.clientWidth)
  expect(await isWide()).toBe(true)
  await view.lastAnswer.getByRole('button', { name: 'Wrap lines' }).click()
  expect(await isWide()).toBe(false)
  const [file] = await Promise.all([view.page.waitForEvent('download'), view.lastAnswer.getByRole('button', { name: 'Download code' }).click()])
  expect(file.suggestedFilename()).toBe('code.rs')
  await view.lastAnswer.getByRole('button', { name: 'Collapse code' }).click()
  await block.waitFor({ state: 'hidden' })
})
