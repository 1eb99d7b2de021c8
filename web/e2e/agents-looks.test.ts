import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { AgentsView, makeAgent } from './harness/agents'
import { forms, inspect } from './harness/forms'
import { stageForTests } from './harness/stage-for-tests'

const prompt = `You review changes to a parser. Read the whole change before you say anything.

Name the file and the line. Say what breaks, and how you know.`

const stage = stageForTests(/status of (400|422)/)
let reviewer: string
beforeAll(async () => {
  const tools = { allow: ['Read', 'Grep', 'mcp__git__*'], ask: ['Bash'], deny: ['WebFetch'] }
  reviewer = (await makeAgent(stage, 'Reviewer', { model: 'claude-sonnet-4-5', system_prompt: prompt, tools, limits: { turns: 40, wall_seconds: 1800 } })).id
  await makeAgent(stage, 'Scout', { provider: 'claude_code', system_prompt: 'Looks around first.' })
  await makeAgent(stage, 'A name that somebody made much too long for any card on any screen to hold it in one line')
  for (const task of ['!count 3', '!count 3', '!fail no Not today.']) {
    await stage.server.fetch(`/execute/agent/${reviewer}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ message: task }),
    }).then((response) => response.text())
  }
})

interface Scene {
  name: string
  path: string
  prepare?: (page: Page, view: AgentsView) => Promise<void>
}

const report = '!script [{"thinking":"I look at the files first."},{"tool_use":{"id":"t","name":"Grep","input":{"pattern":"parse_frame"}}},{"tool_result":{"id":"t","content":"2 matches in 2 files"}},{"text":"Two things **stand out**:\\n\\n1. `parse_frame` reads past the end.\\n2. Errors lose their position."},{"usage":{"input_tokens":4200,"output_tokens":612,"cache_read_tokens":18000,"model":"claude-sonnet-4-5"}}]'

function scenes(): Scene[] {
  const path = `/agents/${reviewer}`
  const task = async (page: Page, view: AgentsView): Promise<void> => {
    await page.getByRole('main').getByRole('button', { name: 'Run a task', exact: true }).click()
    await view.dialog.getByLabel('Task').last().waitFor()
  }
  return [
    { name: 'agents', path: '/agents', prepare: (_, view) => view.card('Reviewer').waitFor() },
    { name: 'agent', path, prepare: (_, view) => view.field('Name').waitFor() },
    {
      name: 'agent-lower',
      path,
      prepare: async (_, view) => {
        await view.field('Model calls').fill('0')
        await view.button('Save').click()
        await view.page.getByRole('alert').first().waitFor()
        await view.field('Model calls').scrollIntoViewIfNeeded()
      },
    },
    { name: 'agent-new', path: '/agents/new', prepare: (_, view) => view.field('Name').waitFor() },
    {
      name: 'agent-test',
      path: `${path}?test=true`,
      prepare: async (page) => {
        const side = page.getByRole('region', { name: 'Test of Reviewer' })
        await side.getByRole('textbox', { name: 'Message' }).waitFor()
        if ((await page.locator('article[data-kind=answer]').count()) > 0) return
        await side.getByRole('textbox', { name: 'Message' }).fill(report)
        await side.getByRole('textbox', { name: 'Message' }).press('Enter')
        await side.getByText(/tokens/).first().waitFor()
      },
    },
    { name: 'agent-effective', path: `${path}?show=effective`, prepare: (page) => page.getByText(/does not say|are not listed/).waitFor() },
    { name: 'agent-menu', path, prepare: (page) => page.getByRole('button', { name: 'Actions for Reviewer' }).click() },
    { name: 'agent-delete', path, prepare: (_, view) => view.choose('Reviewer', 'Delete') },
    {
      name: 'agent-leave',
      path,
      prepare: async (page, view) => {
        await view.field('Model').fill('another')
        await page.getByRole('main').getByRole('link', { name: 'Agents', exact: true }).click()
        await view.dialog.waitFor()
      },
    },
    {
      name: 'agents-import',
      path: '/agents',
      prepare: async (_, view) => {
        await view.button('Import').click()
        await view.dialog.getByLabel('Or paste it here').fill('[{"name":"One","provider":"scripted"},{"name":"Two","provider":"nobody"}]')
        await view.dialog.getByRole('button', { name: 'Create 2 agents' }).click()
        await view.dialog.getByRole('alert').waitFor()
      },
    },
    { name: 'execute', path, prepare: task },
    {
      name: 'execute-done',
      path,
      prepare: async (page, view) => {
        await task(page, view)
        await view.run(report)
        await view.dialog.getByText('is done').waitFor()
      },
    },
    {
      name: 'execute-asks',
      path,
      prepare: async (page, view) => {
        await task(page, view)
        await view.run('!ask Bash {"cmd":"rm -r build"}')
        await view.dialog.getByRole('button', { name: 'Allow' }).waitFor()
      },
    },
    {
      name: 'execute-failed',
      path,
      prepare: async (page, view) => {
        await task(page, view)
        await view.run('!fail over_loaded The model is over capacity; try again in a minute.')
        await view.dialog.getByRole('alert').waitFor()
      },
    },
    { name: 'agent-gone', path: '/agents/00000000-0000-7000-8000-000000000000', prepare: (_, view) => view.heading('Agent not found').waitFor() },
  ]
}

describe.each(Object.entries(forms))('in the form %s', (form, options) => {
  it('every page is within its width, without a barrier, and pictured', async () => {
    const faults: string[] = []
    const page = await stage.page('/', { ...options, reducedMotion: 'reduce' })
    page.on('dialog', (dialog) => void dialog.accept())
    for (const scene of scenes()) {
      if (form === 'wide' && !['agents', 'agent', 'agent-test', 'execute-done'].includes(scene.name)) continue
      await page.goto(stage.url + scene.path)
      await scene.prepare?.(page, new AgentsView(page))
      faults.push(...(await inspect(page, scene.name, form)))
    }
    expect(faults).toEqual([])
  }, 180_000)
})
