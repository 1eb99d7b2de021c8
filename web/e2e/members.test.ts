import { describe, expect, it } from 'vitest'
import type { Locator, Page } from 'playwright-core'
import { makeAgent } from './harness/agents'
import { forms, inspect } from './harness/forms'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

interface Team {
  room: string
  agents: string[]
}

async function team(name: string, policy: object = {}, agents = ['Ada', 'Bob', 'Cyd']): Promise<Team> {
  const made = await Promise.all(agents.map((agent) => makeAgent(stage, `${agent} ${name}`)))
  const ids = made.map(({ id }) => id)
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name, agents: ids, policy: { kind: 'in_order', ...policy } })
  return { room: id, agents: ids }
}

async function membersOf(page: Page): Promise<Locator> {
  await page.getByRole('button', { name: 'Members', exact: true }).click()
  return page.getByRole('complementary', { name: 'Members' })
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.keyboard.press('Enter')
}

const policyOf = async (room: string): Promise<Record<string, unknown>> => (await stage.server.api<{ policy: Record<string, unknown> }>(`/rooms/${room}`)).policy

it.each(['light', 'phone'] as const)('each member has its flags, and the policy its options, in the form %s', async (form) => {
  const { room, agents } = await team(`Flags ${form}`)
  const page = await stage.page(`/rooms/${room}`, forms[form])
  const members = await membersOf(page)
  await members.getByRole('button', { name: `Settings of Bob Flags ${form}`, exact: true }).click()
  const settings = members.getByRole('group', { name: `Settings of Bob Flags ${form}` })
  await settings.getByLabel('Priority', { exact: true }).fill('7')
  await settings.getByLabel('Priority', { exact: true }).press('Enter')
  await members.getByText('Priority 7', { exact: true }).waitFor()
  await settings.getByRole('checkbox', { name: /^Critic/ }).click()
  await members.getByText('Priority 7 · Critic', { exact: true }).waitFor()
  for (const flag of [/^Reacts to every turn/, /^Triggers nobody/, /^Has the last word/, /^Speaks only when mentioned/]) {
    const box = settings.getByRole('checkbox', { name: flag })
    await box.click()
    await expect.poll(() => box.isChecked()).toBe(true)
  }
  const set = (await policyOf(room)).members as Record<string, object>
  expect(set[agents[1] ?? '']).toEqual({ priority: 7, critic: true, interrupt_every_turn: true, transparent: true, final_response: true, aware_only: true, model: null, thinking: null })
  expect(await inspect(page, 'member-settings', form)).toEqual([])
  await members.getByText('More options', { exact: true }).click()
  await members.getByRole('checkbox', { name: /^Agents react to each other/ }).click()
  const rounds = members.getByLabel('Rounds per message, at most', { exact: true })
  await rounds.fill('3')
  await rounds.press('Tab')
  await expect.poll(async () => (await policyOf(room)).max_rounds).toBe(3)
  await members.getByLabel('When a message mentions agents', { exact: true }).selectOption({ label: 'They answer first' })
  await expect.poll(async () => (await policyOf(room)).mentions).toBe('first')
  expect(await policyOf(room)).toMatchObject({ follow_up: true, max_rounds: 3 })
})

describe('the tape', () => {
  const names = (next: Locator): Promise<string[]> => next.locator('ol strong').allInnerTexts()

  it('is put into another order by buttons and by dragging, and an agent is inserted', async () => {
    const { room, agents } = await team('Order', {}, ['Ada', 'Bob', 'Cyd', 'Dan'])
    const priorities = Object.fromEntries(agents.map((agent, index) => [agent, { priority: agents.length - index }]))
    await stage.server.send('PATCH', `/rooms/${room}`, { policy: { kind: 'everyone', members: priorities } })
    const page = await stage.page(`/rooms/${room}`)
    const members = await membersOf(page)
    const next = members.getByRole('region', { name: 'Up next' })
    await say(page, '!hang')
    await next.getByText(/planned/).first().waitFor()
    expect(await names(next)).toEqual(['Ada Order', 'Bob Order', 'Cyd Order', 'Dan Order'])
    const later = next.getByRole('button', { name: 'Move Bob Order later', exact: true })
    await later.focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => names(next)).toEqual(['Ada Order', 'Cyd Order', 'Bob Order', 'Dan Order'])
    // The focus stays with the cell, so that the next press goes on.
    await expect.poll(() => page.evaluate(() => document.activeElement?.closest('li')?.textContent ?? '')).toContain('Bob Order')
    await next.getByRole('listitem').filter({ hasText: 'Dan Order' }).dragTo(next.getByRole('listitem').filter({ hasText: 'Cyd Order' }))
    await expect.poll(() => names(next)).toEqual(['Ada Order', 'Dan Order', 'Cyd Order', 'Bob Order'])
    await next.getByLabel('Let speak next', { exact: true }).selectOption({ label: 'Bob Order' })
    await next.getByRole('button', { name: 'Insert', exact: true }).click()
    await expect.poll(() => names(next)).toEqual(['Ada Order', 'Bob Order', 'Dan Order', 'Cyd Order', 'Bob Order'])
    expect(await inspect(page, 'tape-order', 'light')).toEqual([])
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
  })
})

it.each(['light', 'phone'] as const)('answers that are written at the same time stand side by side, live and after a reload, in the form %s', async (form) => {
  const { room } = await team(`At once ${form}`, { kind: 'concurrent' })
  const page = await stage.page(`/rooms/${room}`, forms[form])
  await page.getByRole('textbox', { name: 'Message' }).fill(`!script ${JSON.stringify([{ text: 'First this. ' }, { after_ms: 1500, text: 'Then that.' }])}`)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  const together = page.getByRole('group', { name: '3 answers at the same time' })
  await together.waitFor()
  await expect.poll(() => together.getByText('Then that.').count(), { timeout: 30_000 }).toBe(3)
  const tops = await together.locator('article').evaluateAll((articles) => articles.map((article) => Math.round(article.getBoundingClientRect().top)))
  // Two columns fit beside each other, on a phone one.
  expect(tops[0] === tops[1]).toBe(form === 'light')
  expect(await inspect(page, 'side-by-side', form)).toEqual([])
  await page.reload()
  await together.waitFor()
})

it('what only people read is marked: whispers and the remarks of a critic', async () => {
  const { room, agents } = await team('Private')
  await stage.server.send('PATCH', `/rooms/${room}`, { policy: { members: { [agents[1] ?? '']: { critic: true } } } })
  const page = await stage.page(`/rooms/${room}`)
  await say(page, `!script ${JSON.stringify([{ status: { status: 'whisper', message: 'Bob is **wrong**' } }, { tool_use: { id: 't1', name: 'look', input: {} } }, { tool_result: { id: 't1', content: 'x' } }, { text: 'I agree.' }])}`)
  const answers = page.locator('article[data-kind=answer]')
  await expect.poll(() => answers.filter({ hasText: 'I agree.' }).count()).toBe(3)
  const whisper = answers.first().getByRole('list', { name: 'Whispers' })
  expect(await whisper.innerText()).toMatch(/only people read this\s+Bob is wrong/)
  expect(await answers.getByText('Critic: only people read this', { exact: true }).count()).toBe(1)
  expect(await inspect(page, 'whispers', 'light')).toEqual([])
  await page.reload()
  await answers.first().getByRole('list', { name: 'Whispers' }).waitFor()
})

it('what an agent remembers is read, corrected and deleted', async () => {
  const { id } = await makeAgent(stage, 'Rememberer')
  // The scripted agent saves no notes, so the answers of the server are written here; the changes are what is looked at.
  let notes = [{ id: '01999999-0000-7000-8000-000000000001', text: 'Ann likes tabs', created_at: '2026-01-02T03:04:05Z' }]
  const page = await stage.page('/agents')
  await page.route(`**/api/agents/${id}/memories**`, async (route) => {
    const request = route.request()
    if (request.method() === 'PATCH') notes = notes.map((note) => ({ ...note, ...(request.postDataJSON() as object) }))
    if (request.method() === 'DELETE') notes = []
    await (request.method() === 'DELETE' ? route.fulfill({ status: 204 }) : route.fulfill({ json: request.method() === 'PATCH' ? notes[0] : { memories: notes } }))
  })
  await page.goto(`${stage.url}/agents/${id}?show=memory`)
  await page.getByText('Ann likes tabs', { exact: true }).waitFor()
  expect(await inspect(page, 'memory', 'light')).toEqual([])
  await page.getByRole('button', { name: 'Edit note', exact: true }).click()
  await page.getByLabel('Note', { exact: true }).fill('Ann likes spaces')
  await page.getByRole('button', { name: 'Save', exact: true }).first().click()
  await page.getByText('Ann likes spaces', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Delete note', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete note', exact: true }).click()
  await page.getByText('No notes yet.').waitFor()
})
