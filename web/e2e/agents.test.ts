import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { AgentsView, makeAgent, openAgents } from './harness/agents'
import { RoomView } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

interface AgentRecord {
  name: string
  provider: string
  model: string | null
  system_prompt: string | null
  tools: { allow: string[]; ask: string[]; deny: string[] }
  limits: Record<string, number>
  model_options?: object | null
  skill_parameters?: object
}

// Refusals are what some of these tests are about; a browser notes each.
const stage = stageForTests(/status of (400|422)/)

const read = (id: string): Promise<AgentRecord> => stage.server.api(`/agents/${id}`)

it('a newcomer makes an agent from the first room on, and tries it at once', async () => {
  const page = await stage.page('/')
  await page.getByRole('link', { name: /more providers/ }).click()
  const view = new AgentsView(page)
  await view.heading('New agent').waitFor()
  await page.getByRole('radio', { name: /^Claude Code(?! over)/ }).check()
  expect(await view.field('Name').inputValue()).toBe('Claude Code')
  await page.getByRole('radio', { name: /Demo agent/ }).check()
  await view.field('Name').fill('Ada')
  await view.field('Instructions').fill('You are short.')
  await view.button('Create and test').click()
  await view.heading('Ada').waitFor()
  const side = page.getByRole('region', { name: 'Test of Ada' })
  await side.getByText('Try the demo agent').waitFor()
  await side.getByRole('textbox', { name: 'Message' }).fill('!count 5')
  await side.getByRole('textbox', { name: 'Message' }).press('Enter')
  await new RoomView(page).hears('1 2 3 4 5')
  await side.getByText(/tokens/).first().waitFor()
  await view.button('Close test').click()
  await side.waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Agents', exact: true }).first().click()
  await view.card('Ada').getByText('You are short.').waitFor()
})

it('what the server refuses is said beside the field it is about', async () => {
  const view = await openAgents(stage, '/agents/new')
  await view.field('Name').fill('  ')
  await view.button('Create agent').click()
  await view.page.getByText('A name must not be empty.').waitFor()
  expect(await view.field('Name').getAttribute('aria-invalid')).toBe('true')
  expect(await view.field('Name').evaluate((field) => field === document.activeElement)).toBe(true)
  await view.field('Name').fill('Wrong skill')
  await view.section('Skills and MCP servers').click()
  await view.field('Skills').fill('no-such-skill')
  await view.button('Create agent').click()
  await view.page.getByRole('alert').filter({ hasText: 'no-such-skill' }).waitFor()
  expect(await view.field('Skills').getAttribute('aria-invalid')).toBe('true')
  await view.page.getByRole('button', { name: 'Remove no-such-skill' }).click()
  await view.section('Limits').click()
  await view.field('Model calls').fill('0')
  await view.button('Create agent').click()
  await view.page.getByRole('alert').filter({ hasText: 'at least 1' }).waitFor()
  await view.field('Model calls').fill('7')
  await view.button('Create agent').click()
  await view.heading('Wrong skill').waitFor()
})

it('settings are changed, kept over a reload, and only what was changed is sent', async () => {
  const { id } = await makeAgent(stage, 'Editable', { model: 'one', tools: { allow: ['Read'], ask: [], deny: [] }, limits: { turns: 3 } })
  const view = await openAgents(stage, `/agents/${id}`)
  await view.field('Model').fill('two')
  await view.field('Always allow').fill('mcp__git__*')
  await view.field('Always allow').press('Enter')
  await view.field('Never').fill('WebFetch')
  await view.field('Model calls').fill('')
  await view.field('Tool name').fill('mcp__git__log')
  await view.page.getByText('is used without asking, because of mcp__git__*').waitFor()
  // Somebody else changes another setting meanwhile: that stays.
  await stage.server.fetch(`/agents/${id}`, { method: 'PATCH', headers: { 'content-type': 'application/json' }, body: '{"system_prompt":"Theirs"}' })
  await view.page.keyboard.press('Control+s')
  await view.page.getByText('Unsaved changes').waitFor({ state: 'detached' })
  expect(await read(id)).toMatchObject({ model: 'two', system_prompt: 'Theirs', tools: { allow: ['Read', 'mcp__git__*'], ask: [], deny: ['WebFetch'] }, limits: {} })
  await view.page.reload()
  await view.page.getByRole('button', { name: 'Change mcp__git__*' }).waitFor()
  expect(await view.field('Model').inputValue()).toBe('two')
  expect(await view.field('Instructions').inputValue()).toBe('Theirs')
})

it('asks before unsaved changes are lost', async () => {
  const { id } = await makeAgent(stage, 'Guarded')
  const view = await openAgents(stage, `/agents/${id}`)
  await view.field('Model').fill('typed')
  await view.button('Discard').click()
  expect(await view.field('Model').inputValue()).toBe('')
  await view.field('Model').fill('typed')
  // Another view of the same agent is no leaving.
  await view.page.getByText('Effective tools').click()
  await view.page.getByRole('main').getByText('Settings', { exact: true }).click()
  expect(await view.field('Model').inputValue()).toBe('typed')
  await view.page.getByRole('main').getByRole('link', { name: 'Agents', exact: true }).click()
  await view.dialog.getByRole('button', { name: 'Keep editing' }).click()
  expect(await view.field('Model').inputValue()).toBe('typed')
  await view.page.getByRole('main').getByRole('link', { name: 'Agents', exact: true }).click()
  await view.dialog.getByRole('button', { name: 'Discard changes' }).click()
  await view.heading('Agents').waitFor()
  expect((await read(id)).model).toBeNull()
})

it('b37_the_test_of_an_agent_is_in_one_room_whichever_browser_opens_it', async () => {
  const { id } = await stage.server.api<{ id: string }>('/agents', { name: 'Tested', provider: 'scripted' })
  for (let browser = 0; browser < 2; browser += 1) {
    const page = await stage.page(`/agents/${id}?test=true`)
    await page.getByRole('region', { name: 'Test of Tested' }).getByRole('textbox', { name: 'Message' }).waitFor()
  }
  const { rooms } = await stage.server.api<{ rooms: { name: string }[] }>('/rooms')
  expect(rooms.filter(({ name }) => name === 'Test of Tested')).toHaveLength(1)
})

it('an agent is duplicated, and the copy is its own', async () => {
  const { id } = await makeAgent(stage, 'Original', { model: 'm', system_prompt: 'Be kind.' })
  const view = await openAgents(stage)
  await view.choose('Original', 'Duplicate')
  await view.heading('New agent').waitFor()
  expect(await view.field('Name').inputValue()).toBe('Original copy')
  await view.field('Model').fill('other')
  await view.button('Create agent').click()
  await view.heading('Original copy').waitFor()
  expect(view.page.url()).not.toContain(id)
  expect(await view.field('Instructions').inputValue()).toBe('Be kind.')
  expect((await read(id)).model).toBe('m')
})

it('an agent is exported, deleted, and imported again as it was', async () => {
  const { id } = await makeAgent(stage, 'Traveller', { model: 'm', system_prompt: 'Go.', tools: { allow: ['*'], ask: [], deny: ['Bash'] }, limits: { turns: 9 } })
  const before = await read(id)
  const view = await openAgents(stage, `/agents/${id}`)
  const saved = view.page.waitForEvent('download')
  await view.choose('Traveller', 'Export as JSON')
  const file = await saved
  expect(file.suggestedFilename()).toBe('Traveller.agent.json')
  const path = join(tmpdir(), `greenroom-e2e-${id}.json`)
  writeFileSync(path, readFileSync(await file.path()))
  await view.choose('Traveller', 'Delete')
  await view.dialog.getByRole('button', { name: 'Delete agent' }).click()
  await view.heading('Agents').waitFor()
  await view.card('Traveller').waitFor({ state: 'detached' })
  await view.button('Import').click()
  await view.dialog.getByLabel('Or paste it here').fill('not json')
  await view.dialog.getByText('Not valid JSON.').waitFor()
  await view.page.locator('input[type=file]').setInputFiles(path)
  await view.dialog.getByRole('list', { name: 'Agents found' }).getByText('Traveller').waitFor()
  await view.dialog.getByRole('button', { name: 'Create agent' }).click()
  await view.heading('Traveller').waitFor()
  const { name, model, system_prompt, tools, limits } = await read(view.page.url().split('/').at(-1) ?? '')
  expect({ name, model, system_prompt, tools, limits }).toEqual({
    name: before.name,
    model: before.model,
    system_prompt: before.system_prompt,
    tools: before.tools,
    limits: before.limits,
  })
})

it('an agent that is gone says so', async () => {
  const view = await openAgents(stage, '/agents/00000000-0000-7000-8000-000000000000')
  await view.heading('Agent not found').waitFor()
})

it('a direct API is told how to ask its model, and skills what they need', async () => {
  const parameters = [
    { name: 'path', type: 'file_path', required: true },
    { name: 'depth', type: 'number', default: 3 },
    { name: 'strict', type: 'boolean' },
  ]
  await stage.server.api('/skills', { name: 'look-closely', description: 'Looks closely', body: '{{path}} {{depth}} {{strict}}', parameters })
  const view = await openAgents(stage, '/agents/new')
  await view.field('Name').fill('Asker')
  expect(await view.section('Model options').count()).toBe(0)
  await view.page.getByText(/\(not set up\)$/).click()
  await view.page.getByRole('radio', { name: /^Anthropic API/ }).check()
  await view.button('Create agent').click()
  await view.page.getByText('Required, because anthropic has no default model').first().waitFor()
  expect(await view.field('Model').getAttribute('aria-invalid')).toBe('true')
  await view.field('Model').fill('claude-sonnet-4-5')
  await view.section('Model options').click()
  await view.field('Thinking').selectOption('high')
  await view.field('Max output tokens').fill('8000')
  await view.field('Several tool calls').selectOption('One after another')
  await view.section('Skills and MCP servers').click()
  await view.field('Skills').fill('look-closely')
  await view.field('Skills').press('Enter')
  await view.field('path (required)').fill('src')
  await view.field('depth').fill('7')
  await view.field('strict').selectOption('true')
  await view.button('Create agent').click()
  await view.heading('Asker').waitFor()
  const id = view.page.url().split('/').at(-1) ?? ''
  expect(await read(id)).toMatchObject({
    model_options: { thinking: 'high', max_output_tokens: 8000, parallel: false, run_tools: 'after' },
    skill_parameters: { 'look-closely': { path: 'src', depth: 7, strict: true } },
  })
  // Another provider has settings of its own: these go only when a person says so.
  await view.page.getByRole('radio', { name: /^Demo agent/ }).check()
  await view.button('Clear').click()
  await view.field('depth').fill('')
  await view.button('Save').click()
  await view.page.getByText('Unsaved changes').waitFor({ state: 'detached' })
  const saved = await read(id)
  expect(saved.model_options ?? null).toBeNull()
  expect(saved.skill_parameters).toEqual({ 'look-closely': { path: 'src', strict: true } })
})
