import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeAgent, openAgents } from './harness/agents'
import { addServer, openServers, secret, smallServer } from './harness/mcp'
import { RoomView } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests(/status of (400|403|409|422)/)

const read = (name: string): Promise<Record<string, unknown>> => stage.server.api(`/mcp-servers/${name}`)

it('a program is added, tested, tried, and its secret is never shown', async () => {
  const view = await openServers(stage)
  await view.page.getByRole('link', { name: 'Add a server' }).first().click()
  await view.heading('New MCP server').waitFor()
  await view.field('Name').fill('has a space')
  await view.field('Command').fill([smallServer.command, ...smallServer.args].join(' '))
  await view.button('Split into command and arguments').click()
  expect(await view.field('Command').inputValue()).toBe(smallServer.command)
  expect(await view.field('Arguments').inputValue()).toBe(smallServer.args[0])
  await view.button('Add a line').click()
  await view.field('Variable 1').fill('SMALL_TOKEN')
  await view.field('Value of SMALL_TOKEN').fill(secret)
  await view.button('Add server').click()
  await view.form.getByRole('alert').waitFor()
  expect(await view.field('Name').getAttribute('aria-invalid')).toBe('true')
  await view.field('Name').fill('small')
  await view.button('Add server').click()
  await view.heading('small').waitFor()

  await view.button('Test').click()
  await view.dialog.getByRole('button', { name: 'Start test' }).click()
  await view.dialog.getByText(/^Works: 3 tools/).waitFor()
  await view.dialog.getByRole('region', { name: 'Output' }).getByText('ready to greet').waitFor()
  await view.dialog.getByRole('button', { name: 'Close', exact: true }).last().click()

  await view.page.getByText('shapeless is blocked').waitFor()
  const greet = await view.tool('greet')
  await greet.getByRole('button', { name: 'Run' }).click()
  await greet.getByLabel('times (optional)').fill('two')
  await greet.getByRole('button', { name: 'Run' }).click()
  await greet.getByText('Must be a number').waitFor()
  await greet.getByLabel('name', { exact: true }).fill('Ada')
  await greet.getByLabel('times (optional)').fill('2')
  await greet.getByLabel('tone (optional)').selectOption('loud')
  await greet.getByRole('button', { name: 'Run' }).click()
  await greet.getByRole('region', { name: 'Answer 1' }).getByText('HELLO ADA, HELLO ADA', { exact: true }).waitFor()
  const refuse = await view.tool('refuse')
  await refuse.getByRole('button', { name: 'Run' }).click()
  await refuse.getByText('Failed after').waitFor()
  // It got what was typed, which nobody is shown.
  const token = await view.tool('token_length')
  await token.getByRole('button', { name: 'Run' }).click()
  await token.getByText(`The token has ${secret.length} characters.`).waitFor()
  await view.page.getByText('running, 3 tools').waitFor()

  await view.page.getByText('Logs', { exact: true }).click()
  await view.page.getByRole('region', { name: 'Log' }).getByText('connected').waitFor()
  await view.page.getByRole('region', { name: 'Error output' }).getByText('ready to greet').waitFor()

  await view.page.getByRole('main').getByText('Settings', { exact: true }).click()
  expect(await view.field('Value of SMALL_TOKEN').inputValue()).toBe('')
  await view.field('Call timeout (ms)').fill('soon')
  await view.button('Save').click()
  await view.form.getByRole('alert').waitFor()
  expect(await view.field('Call timeout (ms)').getAttribute('aria-invalid')).toBe('true')
  await view.field('Call timeout (ms)').fill('5000')
  await view.button('Save').click()
  await view.page.getByText('Saved.').waitFor()
  expect(await read('small')).toMatchObject({ timeout: 5000, env: { SMALL_TOKEN: '***' } })
  expect(await view.page.content()).not.toContain(secret)
  const result = await stage.server.api<{ content: { text: string }[] }>('/mcp-servers/small/call', { tool: 'token_length' })
  expect(result.content[0]?.text).toContain(String(secret.length))
})

it('a .mcp.json is imported, each server for itself, and exported without its secrets', async () => {
  await addServer(stage, 'taken')
  const view = await openServers(stage)
  await view.row('taken').waitFor()
  await view.button('Import').click()
  await view.dialog.getByLabel('Or paste it here').fill('{')
  await view.dialog.getByRole('button', { name: 'Import', exact: true }).click()
  await view.dialog.getByText('Not valid JSON.').waitFor()
  const file = {
    mcpServers: {
      taken: { command: 'other' },
      hub: { type: 'http', url: 'https://user:word@hub.invalid/mcp?key=1', headers: { Authorization: secret } },
      broken: { note: 'nothing to start' },
      later: { command: 'later', disabled: true },
      unset: { command: '${NOBODY_SET_THIS}' },
    },
  }
  await view.page.locator('input[type=file]').setInputFiles({ name: '.mcp.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(file)) })
  await view.dialog.getByRole('button', { name: 'Import', exact: true }).click()
  const outcomes = view.dialog.getByRole('list', { name: 'Results' })
  await outcomes.getByText('hub added').waitFor()
  await outcomes.getByText('taken not imported').waitFor()
  await outcomes.getByText('needs either a command').waitFor()
  await view.dialog.getByRole('button', { name: 'Done' }).click()
  await view.row('later').getByText('off').waitFor()
  await view.row('unset').getByText('NOBODY_SET_THIS (in its command)').waitFor()
  await view.row('hub').getByText('https://***@hub.invalid/mcp?***').waitFor()
  expect((await read('taken')).command).toBe(smallServer.command)

  const saved = view.page.waitForEvent('download')
  await view.button('Export').click()
  const stream = await (await saved).createReadStream()
  const text = Buffer.concat(await stream.toArray()).toString()
  expect(JSON.parse(text).mcpServers.hub.headers).toEqual({ Authorization: '***' })
  expect(text + (await view.page.content())).not.toContain(secret)
})

it('a server is switched off and on, and deleted', async () => {
  await addServer(stage, 'switched')
  const view = await openServers(stage, '/mcp-servers/switched')
  const choose = async (item: string): Promise<void> => {
    await view.button('Actions for switched').click()
    await view.page.getByRole('menuitem', { name: item }).click()
  }
  await view.page.getByText('running, 3 tools').waitFor()
  await choose('Turn off')
  await view.page.getByText('Turn it on to see its tools.').waitFor()
  await choose('Turn on')
  await view.page.getByText('greet', { exact: true }).waitFor()
  await choose('Delete')
  await view.dialog.getByRole('button', { name: 'Delete server' }).click()
  await view.heading('MCP servers').waitFor()
  await view.row('switched').waitFor({ state: 'detached' })
  await view.page.goto(`${stage.url}/mcp-servers/switched`)
  await view.page.getByText('MCP server not found.').waitFor()
})

it('an agent says which servers and tools it has, from where, and what keeps a project’s out until it is trusted', async () => {
  await addServer(stage, 'shared')
  const tools = { allow: ['mcp__shared__greet'], ask: [], deny: ['mcp__shared__refuse'] }
  const { id } = await makeAgent(stage, 'Equipped', { provider: 'codex', mcp_servers: ['shared'], tools })
  const room = await stage.server.api<{ id: string }>('/rooms', { name: 'With a project', agents: [id] })
  const folder = join(stage.server.folder, 'rooms', room.id)
  mkdirSync(folder, { recursive: true })
  const file = (name: string): void => writeFileSync(join(folder, '.mcp.json'), JSON.stringify({ mcpServers: { [name]: { ...smallServer, env: { KEY: secret } }, shared: { command: 'another', args: ['of two words'] } } }))
  file('projects')

  const agents = await openAgents(stage, `/agents/${id}?show=effective`)
  const server = (name: string) => agents.page.getByRole('region', { name: `MCP server ${name}` })
  await server('shared').getByText('named by this agent, defined on the page of MCP servers').waitFor()
  const tool = (name: string) => server('shared').getByRole('listitem').filter({ hasText: name })
  await tool('greet').getByText('without asking').waitFor()
  await tool('token_length').getByText('asks first').waitFor()
  await tool('refuse').getByText('never').waitFor()
  await tool('shapeless').getByText('Blocked', { exact: true }).waitFor()
  await agents.page.getByRole('combobox', { name: 'In the room' }).selectOption('With a project')
  await server('projects').getByText('not trusted yet').waitFor()

  const view = new RoomView(await stage.page(`/rooms/${room.id}`))
  await view.field.waitFor()
  await view.button('Room actions').click()
  await view.page.getByRole('menuitem', { name: 'Room settings' }).click()
  const listed = view.page.getByRole('list', { name: 'In its .mcp.json' })
  await listed.getByText('projects').waitFor()
  await listed.getByText('gets KEY').waitFor()
  await listed.getByText('another "of two words"').waitFor()
  // What is trusted is what was seen: here the file is changed in between.
  file('changed')
  await view.button('Trust these servers').click()
  await view.page.getByText('review it again').waitFor()
  await listed.getByText('changed').waitFor()
  await view.button('Trust these servers').click()
  await view.button('Stop trusting').waitFor()
  expect(await stage.server.api(`/rooms/${room.id}/mcp-trust`)).toMatchObject({ state: 'trusted' })
  expect(await view.page.content()).not.toContain(secret)

  await agents.button('Reload').click()
  await server('changed').getByText('from the project’s .mcp.json').waitFor()
  await server('changed').getByText('greet', { exact: true }).waitFor()
  await server('shared').getByText('overrides the one from the project’s .mcp.json').waitFor()
  await view.button('Stop trusting').click()
  await view.button('Trust these servers').waitFor()
  expect(await stage.server.api(`/rooms/${room.id}/mcp-trust`)).toMatchObject({ state: 'untrusted' })
})
