import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { makeAgent } from './harness/agents'
import { forms, inspect } from './harness/forms'
import { McpView, addServer, smallServer } from './harness/mcp'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests(/status of (400|422)/)
let equipped: string
let direct: string
let room: string
beforeAll(async () => {
  await addServer(stage, 'small')
  await addServer(stage, 'off', { disabled: true })
  await addServer(stage, 'unset', { command: '${NOBODY_SET_THIS}' })
  await addServer(stage, 'gone', { command: 'no-such-program-on-any-machine' })
  await stage.server.api('/mcp-servers', { name: 'hub', type: 'http', url: 'https://user:word@hub.invalid/mcp?key=1', headers: { Authorization: 'x' } })
  const parameters = [
    { name: 'path', type: 'file_path', required: true, description: 'What to look at.' },
    { name: 'depth', type: 'choice', choices: ['shallow', 'deep'], default: 'shallow' },
  ]
  await stage.server.api('/skills', { name: 'code-review', description: 'Reviews code', body: '# Review {{path}} {{depth}}', parameters, mcp_servers: { small: smallServer } })
  const tools = { allow: ['mcp__small__greet'], ask: [], deny: ['mcp__small__refuse'] }
  equipped = (await makeAgent(stage, 'Equipped', { provider: 'codex', mcp_servers: ['small', 'off', 'unset', 'gone'], skills: ['code-review'], tools })).id
  const model_options = { thinking: 'high', max_output_tokens: 8000 }
  direct = (await makeAgent(stage, 'Direct', { provider: 'anthropic', model: 'claude-sonnet-4-5', skills: ['code-review'], skill_parameters: { 'code-review': { depth: 'deep' } }, model_options })).id
  room = (await stage.server.api<{ id: string }>('/rooms', { name: 'With a project', agents: [equipped] })).id
  const folder = join(stage.server.folder, 'rooms', room)
  mkdirSync(folder, { recursive: true })
  const mcpServers = { projects: { ...smallServer, env: { KEY: 'x' } }, small: { command: 'another' }, wrong: {} }
  writeFileSync(join(folder, '.mcp.json'), JSON.stringify({ mcpServers }))
}, 60_000)

interface Scene {
  name: string
  path: string
  prepare: (page: Page, view: McpView) => Promise<unknown>
}

function scenes(): Scene[] {
  return [
    { name: 'mcp-servers', path: '/mcp-servers', prepare: (_, view) => view.row('hub').waitFor() },
    {
      name: 'mcp-import',
      path: '/mcp-servers',
      prepare: async (_, view) => {
        await view.button('Import').click()
        await view.dialog.getByLabel('Or paste it here').fill('{"mcpServers":{"off":{"command":"other"},"broken":{}}}')
        await view.dialog.getByRole('button', { name: 'Import', exact: true }).click()
        await view.dialog.getByText('broken').last().waitFor()
      },
    },
    {
      name: 'mcp-new',
      path: '/mcp-servers/new',
      prepare: async (_, view) => {
        await view.field('Command').fill('npx -y a-server')
        await view.button('Add a line').click()
        await view.button('Add server').click()
        await view.form.getByRole('alert').first().waitFor()
      },
    },
    {
      name: 'mcp-server',
      path: '/mcp-servers/small',
      prepare: async (_, view) => {
        const greet = await view.tool('greet')
        await greet.getByLabel('name', { exact: true }).fill('Ada')
        await greet.getByRole('button', { name: 'Run' }).click()
        await greet.getByText('Hello Ada').waitFor()
      },
    },
    {
      name: 'mcp-test',
      path: '/mcp-servers/gone',
      prepare: async (page, view) => {
        await page.getByRole('main').getByRole('alert').waitFor()
        await view.button('Test').click()
        await view.dialog.getByRole('button', { name: 'Start test' }).click()
        await view.dialog.getByRole('alert').waitFor()
      },
    },
    { name: 'mcp-logs', path: '/mcp-servers/small?show=logs', prepare: (page) => page.getByRole('region', { name: 'Log' }).waitFor() },
    { name: 'mcp-settings', path: '/mcp-servers/hub?show=settings', prepare: (_, view) => view.field('Address').waitFor() },
    {
      name: 'mcp-effective',
      path: `/agents/${equipped}?show=effective`,
      prepare: async (page) => {
        await page.getByRole('combobox', { name: 'In the room' }).selectOption('With a project')
        await page.getByText('not trusted yet').first().waitFor()
      },
    },
    {
      name: 'mcp-trust',
      path: `/rooms/${room}`,
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Room actions' }).click()
        await page.getByRole('menuitem', { name: 'Room settings' }).click()
        await page.getByRole('button', { name: 'Trust these servers' }).scrollIntoViewIfNeeded()
      },
    },
    { name: 'agent-options', path: `/agents/${direct}`, prepare: (page) => page.getByLabel('Thinking', { exact: true }).scrollIntoViewIfNeeded() },
    { name: 'agent-skill-values', path: `/agents/${direct}`, prepare: (page) => page.getByLabel('path (required)').scrollIntoViewIfNeeded() },
  ]
}

describe.each(Object.entries(forms).filter(([form]) => form !== 'wide'))('in the form %s', (form, options) => {
  it('every page is within its width, without a barrier, and pictured', async () => {
    const faults: string[] = []
    const page = await stage.page('/', { ...options, reducedMotion: 'reduce' })
    page.on('dialog', (dialog) => void dialog.accept())
    for (const scene of scenes()) {
      await page.goto(stage.url + scene.path)
      await scene.prepare(page, new McpView(page))
      faults.push(...(await inspect(page, scene.name, form)))
    }
    expect(faults).toEqual([])
  })
})
