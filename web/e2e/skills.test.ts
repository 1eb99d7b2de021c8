import { mkdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Locator, Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { stageForTests } from './harness/stage-for-tests'

// A browser complains of each request that is refused, as some here are on purpose.
const stage = stageForTests(/status of 422/)

const script = (text: string): string => `!script ${JSON.stringify([{ text }])}`
const save = (page: Page): Locator => page.getByRole('button', { name: 'Save', exact: true })
const part = (page: Page, name: string): Locator => page.getByRole('navigation', { name: 'Parts of the skill' }).getByRole('link', { name })

async function makeSkill(name: string, more: object = {}): Promise<void> {
  await stage.server.api('/skills', { name, description: `Use it to try ${name}.`, body: '# One\n\nFirst line\n', ...more })
}

async function openSkill(name: string, tab = ''): Promise<Page> {
  const page = await stage.page(`/skills/${name}${tab && `?tab=${tab}`}`)
  await page.getByRole('navigation', { name: 'Parts of the skill' }).waitFor()
  return page
}

it('makes a skill, and says at each field what is wrong with it', async () => {
  const page = await stage.page('/skills')
  await page.getByText('No skills yet').waitFor()
  await page.getByRole('link', { name: 'New skill' }).click()
  const name = page.getByLabel('Name', { exact: true })
  await name.fill('Code Review')
  await page.getByText('lowercase letters, digits and single hyphens').waitFor()
  expect(await name.getAttribute('aria-invalid')).toBe('true')
  await name.fill('code-review')
  await page.getByLabel('Category').fill('engineering')
  await page.getByRole('textbox', { name: 'Instructions' }).fill('# Review\n\nLook at {{path}} in {{depth}} steps.')
  await page.getByText('{{path}} is not a parameter of this skill').waitFor()

  await page.getByRole('button', { name: 'Add a parameter' }).click()
  const first = page.getByRole('group', { name: 'Parameter' }).first()
  await first.getByLabel('Name').fill('path')
  await first.getByLabel('Type').selectOption('file_path')
  await first.getByLabel('Required').check()
  await page.getByRole('button', { name: 'Add a parameter' }).click()
  const second = page.getByRole('group', { name: 'Parameter' }).last()
  await second.getByLabel('Name').fill('depth')
  await second.getByLabel('Type').selectOption('number')
  await second.getByLabel('Default').fill('deep')
  await second.getByText('is not a number').waitFor()
  await second.getByLabel('Default').fill('3')
  await page.getByText('{{depth}} is not a parameter of this skill').waitFor({ state: 'detached' })

  await page.getByLabel('Servers, as in .mcp.json').fill('{"files": ')
  await page.getByText('This is not JSON').waitFor()
  await page.getByLabel('Servers, as in .mcp.json').fill('{"files": {"command": "files-server"}}')
  await page.getByLabel('Never').fill('Bash(rm *)')

  await page.getByRole('button', { name: 'Create skill' }).click()
  await page.getByText('a skill needs a description').waitFor()
  await page.getByLabel('Description').fill('Finds bugs in a change. Use it before a merge.')
  await page.getByText('Preview', { exact: true }).click()
  await page.getByRole('region', { name: 'Preview' }).getByRole('heading', { name: 'Review' }).waitFor()
  await page.getByText('SKILL.md', { exact: true }).click()
  await page.getByRole('group', { name: 'Code, markdown' }).filter({ hasText: 'name: code-review' }).waitFor()
  await page.getByText('a skill needs a description').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Create skill' }).click()
  await part(page, 'Versions').waitFor()

  const made = await stage.server.api<Record<string, unknown>>('/skills/code-review')
  expect(made).toMatchObject({
    category: 'engineering',
    parameters: [
      { name: 'path', type: 'file_path', required: true, default: null },
      { name: 'depth', type: 'number', required: false, default: 3 },
    ],
    mcp_servers: { files: { command: 'files-server' } },
    tools: { deny: ['Bash(rm *)'] },
  })
  await page.getByRole('link', { name: 'Skills' }).first().click()
  const list = page.getByRole('region', { name: 'engineering' })
  await list.filter({ hasText: 'Finds bugs in a change' }).filter({ hasText: 'not rated' }).getByRole('link', { name: 'code-review' }).waitFor()
})

it('fills the form from a SKILL.md, and tells of its frontmatter', async () => {
  const page = await stage.page('/skills/new')
  await page.getByRole('button', { name: 'Import SKILL.md' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox').fill('---\nname: letters\ndescription: Writes letters.\nmood: calm\n---\n\n# Letters\n')
  await dialog.getByRole('button', { name: 'Check and import' }).click()
  await dialog.getByText('the unknown key "mood" is ignored').waitFor()
  await dialog.getByRole('button', { name: 'Import anyway' }).click()
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('letters')
  expect(await page.getByRole('textbox', { name: 'Instructions' }).inputValue()).toContain('# Letters')
})

it('keeps each change as a version that can be compared and restored', async () => {
  await makeSkill('versioned')
  const page = await openSkill('versioned')
  await page.getByRole('textbox', { name: 'Instructions' }).fill('# One\n\nSecond line\n')
  await page.getByLabel('Reason for the change').fill('a better line')
  await save(page).click()
  await page.getByText('Saved as version 2.').waitFor()
  await part(page, 'Versions').click()
  const versions = page.getByRole('list', { name: 'Versions, newest first' }).getByRole('listitem')
  await versions.first().filter({ hasText: 'Version 2' }).filter({ hasText: 'a better line' }).waitFor()
  await page.getByRole('button', { name: 'Show changes of version 2' }).click()
  const diff = page.getByRole('region', { name: 'Changes from version 1 to 2' })
  await diff.locator('[data-kind=removed]').filter({ hasText: 'First line' }).waitFor()
  await diff.locator('[data-kind=added]').filter({ hasText: 'Second line' }).waitFor()
  await page.getByRole('button', { name: 'Show changes of version 1' }).click()
  await page.getByRole('button', { name: 'Restore version 1' }).click()
  await page.getByText('Version 1 is back, as version 3.').waitFor()
  await part(page, 'Edit').click()
  expect(await page.getByRole('textbox', { name: 'Instructions' }).inputValue()).toContain('First line')
})

it('keeps what is typed while other parts are looked at, and asks before it is lost', async () => {
  await makeSkill('guarded')
  const page = await openSkill('guarded')
  const body = page.getByRole('textbox', { name: 'Instructions' })
  await body.fill('mine')
  await part(page, 'Files').click()
  await part(page, 'Edit').click()
  expect(await body.inputValue()).toBe('mine')
  await page.getByRole('link', { name: 'Runs' }).first().click()
  await page.getByRole('button', { name: 'Keep editing' }).click()
  expect(await body.inputValue()).toBe('mine')

  await stage.server.send('PATCH', '/skills/guarded', { body: 'theirs' })
  await save(page).click()
  await page.getByText('Version 2 was saved meanwhile').waitFor()
  await page.getByRole('button', { name: 'Overwrite' }).click()
  await page.getByText('Saved as version 3.').waitFor()
  expect(await stage.server.api('/skills/guarded')).toMatchObject({ version: 3, body: 'mine' })

  await body.fill('lost')
  await page.getByRole('link', { name: 'Runs' }).first().click()
  await page.getByRole('button', { name: 'Discard changes' }).click()
  await page.waitForURL(/\/runs$/)
})

it('adds files by button and drop, hands them out and deletes them', async () => {
  await makeSkill('filed')
  const page = await openSkill('filed', 'files')
  await page.getByLabel('Folder').fill('scripts/')
  await page.getByLabel('Executable').check()
  await page.locator('input[type=file]').setInputFiles([
    { name: 'run.sh', mimeType: 'text/x-sh', buffer: Buffer.from('echo hello') },
    { name: '.hidden', mimeType: 'text/plain', buffer: Buffer.from('x') },
  ])
  const files = page.getByRole('list', { name: 'Files' })
  await files.getByText('scripts/run.sh').waitFor()
  await files.getByText('10 B, program').waitFor()
  await page.getByRole('alert').filter({ hasText: 'scripts/.hidden was not added' }).waitFor()
  await dropFile(page, page.getByLabel('Folder'), 'notes.md')
  await files.getByText('scripts/notes.md').waitFor()
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download scripts/run.sh' }).click()
  expect(await readFile(await (await download).path(), 'utf8')).toBe('echo hello')
  await page.getByRole('button', { name: 'Delete scripts/run.sh' }).click()
  await page.getByRole('button', { name: 'Delete file' }).click()
  await files.getByText('scripts/run.sh').waitFor({ state: 'detached' })
})

it('takes a skill out as a zip and in again, and from the server’s folder', async () => {
  await makeSkill('travelled', { category: 'moved' })
  const page = await openSkill('travelled')
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Export' }).click()
  const archive = await readFile(await (await download).path())
  await page.getByRole('button', { name: 'Skill actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete skill' }).click()
  await page.getByRole('button', { name: 'Delete skill' }).click()
  await page.waitForURL(/\/skills$/)
  await page.getByRole('link', { name: 'travelled' }).waitFor({ state: 'detached' })

  const zip = { name: 'travelled.zip', mimeType: 'application/zip', buffer: archive }
  await page.locator('input[type=file]').setInputFiles(zip)
  await page.waitForURL(/\/skills\/travelled$/)
  await page.goto(`${stage.url}/skills`)
  await page.getByRole('region', { name: 'moved' }).waitFor()
  await page.locator('input[type=file]').setInputFiles(zip)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.locator('input[type=file]').setInputFiles({ ...zip, buffer: Buffer.from('no zip at all') })
  await page.getByRole('alert').filter({ hasText: 'The skill was not imported' }).waitFor()

  mkdirSync(`${stage.server.folder}/skills/shared-notes`, { recursive: true })
  writeFileSync(`${stage.server.folder}/skills/shared-notes/SKILL.md`, '---\nname: shared-notes\ndescription: Takes notes.\n---\n\nTake notes.\n')
  await page.reload()
  await page.getByRole('button', { name: 'Import shared-notes' }).click()
  await page.waitForURL(/\/skills\/shared-notes$/)
})

it('trains a skill: a task, a rating, a proposal that becomes a version', async () => {
  await makeSkill('trained')
  const page = await openSkill('trained', 'training')
  await page.getByText('No ratings yet.').waitFor()
  await page.getByRole('button', { name: 'Open a training room' }).click()
  await page.getByLabel(/^A task for/).fill(script('I looked and found nothing.'))
  await page.getByRole('button', { name: 'Send task' }).click()
  const answers = page.getByRole('article')
  await answers.first().filter({ hasText: 'I looked and found nothing.' }).getByRole('button', { name: 'Rate' }).click()
  const form = page.getByRole('form', { name: 'Rate the answer' })
  await form.getByText('4', { exact: true }).click()
  await form.getByLabel('Comment').fill('missed one')
  await form.getByLabel(/What was wrong/).fill('off by one\nno line numbers')
  await form.getByRole('button', { name: 'Save rating' }).click()
  await answers.first().getByText('Rated 4 of 5').waitFor()
  const chart = page.getByRole('group', { name: /^Experience over time/ })
  await chart.getByRole('img', { name: /^\d+ of 100 after a rating of 4 for version 1/ }).waitFor()
  await page.getByRole('list', { name: /^Training history/ }).filter({ hasText: 'off by one; no line numbers' }).waitFor()

  await page.getByLabel(/^A task for/).fill(script('Better:\n\n````skill\n# One\n\nFirst line, with its number\n````\n'))
  await page.getByRole('button', { name: 'Send task' }).click()
  await page.getByRole('button', { name: 'Look at its proposal' }).click()
  const proposed = page.getByRole('region', { name: 'Proposed changes' })
  await proposed.locator('[data-kind=added]').filter({ hasText: 'with its number' }).waitFor()
  await page.getByRole('button', { name: 'Accept as a new version' }).click()
  await page.getByText('Accepted as version 2.').waitFor()
  await page.getByRole('list', { name: /^Training history/ }).getByText('A proposal was accepted').waitFor()
  await part(page, 'Edit').click()
  expect(await page.getByRole('textbox', { name: 'Instructions' }).inputValue()).toContain('with its number')
})

interface Scene {
  name: string
  path: string
  prepare: (page: Page) => Promise<unknown>
}

const parts = (page: Page): Promise<void> => page.getByRole('navigation', { name: 'Parts of the skill' }).waitFor()

const scenes: Scene[] = [
  { name: 'skills', path: '/skills', prepare: (page) => page.getByRole('link', { name: 'Shown', exact: true }).waitFor() },
  {
    name: 'skill-new',
    path: '/skills/new',
    prepare: async (page) => {
      await page.getByLabel('Name', { exact: true }).fill('Two Words')
      await page.getByRole('textbox', { name: 'Instructions' }).fill('Look at {{path}}.')
      await page.getByText('{{path}} is not a parameter').waitFor()
    },
  },
  {
    name: 'skill-read-file',
    path: '/skills/new',
    prepare: (page) => page.getByRole('button', { name: 'Import SKILL.md' }).click(),
  },
  { name: 'skill-edit', path: '/skills/shown', prepare: parts },
  {
    name: 'skill-parameters',
    path: '/skills/shown',
    prepare: async (page) => {
      await parts(page)
      await page.getByText('Preview', { exact: true }).click()
      await page.getByRole('heading', { name: 'Parameters' }).scrollIntoViewIfNeeded()
      await page.getByRole('group', { name: 'Parameter depth' }).getByLabel('Default').fill('deep')
      await page.getByText('is not a number').waitFor()
    },
  },
  { name: 'skill-files', path: '/skills/shown?tab=files', prepare: (page) => page.getByText('scripts/run.sh').waitFor() },
  {
    name: 'skill-versions',
    path: '/skills/shown?tab=versions',
    prepare: async (page) => {
      await page.getByRole('button', { name: 'Show changes of version 2' }).click()
      await page.getByRole('region', { name: /^Changes from/ }).waitFor()
    },
  },
  { name: 'skill-training', path: '/skills/shown?tab=training', prepare: (page) => page.getByRole('region', { name: 'Proposed changes' }).waitFor() },
  {
    name: 'skill-rate',
    path: '/skills/shown?tab=training',
    prepare: async (page) => {
      await page.getByRole('button', { name: /^Rate/ }).first().click()
      await page.getByRole('button', { name: 'Save rating' }).scrollIntoViewIfNeeded()
    },
  },
  {
    name: 'skill-history',
    path: '/skills/shown?tab=training',
    prepare: (page) => page.getByRole('list', { name: /^Training history/ }).scrollIntoViewIfNeeded(),
  },
  {
    name: 'skill-delete',
    path: '/skills/shown',
    prepare: async (page) => {
      await parts(page)
      await page.getByRole('button', { name: 'Skill actions' }).click()
      await page.getByRole('menuitem', { name: 'Delete skill' }).click()
      await page.getByRole('dialog').waitFor()
    },
  },
  { name: 'skill-missing', path: '/skills/no-such-skill', prepare: (page) => page.getByText('Skill not found').waitFor() },
]

describe('every page of skills is within its width, without a barrier, and pictured', () => {
  beforeAll(() => setTheScene())
  it.each(Object.keys(forms))(
    'in the form %s',
    async (form) => {
      const faults: string[] = []
      const page = await stage.page('/', { ...forms[form], reducedMotion: 'reduce' })
      // Unsaved changes of one scene are not to hold up the next.
      page.on('dialog', (dialog) => void dialog.accept())
      for (const scene of scenes) {
        await page.goto(stage.url + scene.path)
        await scene.prepare(page)
        faults.push(...(await inspect(page, scene.name, form)))
      }
      expect(faults).toEqual([])
    },
    240_000,
  )
})

/** A skill with everything that one can have. */
async function setTheScene(): Promise<void> {
  const { server } = stage
  await makeSkill('shown', {
    display_name: 'Shown',
    category: 'engineering',
    label: '1.2.0',
    description: 'Reviews a change for bugs and says where each one is. Use it before a merge, or when somebody asks for a review of code.',
    body: '# How to review\n\n1. Read `{{path}}` as a whole.\n2. Look for bugs, **not** for style.\n\n```rust\nfn main() {}\n```\n',
    parameters: [
      { name: 'path', type: 'file_path', description: 'Where to look', required: true },
      { name: 'depth', type: 'number', default: 2 },
      { name: 'language', type: 'choice', choices: ['English', 'German'], default: 'English' },
    ],
    mcp_servers: { files: { command: 'files-server', args: ['docs'] } },
    tools: { allow: ['Read'], ask: [], deny: ['Bash(rm *)'] },
  })
  await server.send('PATCH', '/skills/shown?note=less%20about%20style', { body: '# How to review\n\n1. Read `{{path}}` as a whole.\n2. Name each bug with its line.\n\n```rust\nfn main() {}\n```\n' })
  await server.fetch(`/skills/shown/files/scripts%2Frun.sh?executable=true`, { method: 'PUT', body: 'cargo test' })
  await server.fetch(`/skills/shown/files/reference.md`, { method: 'PUT', body: '# Reference' })
  const { agents } = await server.api<{ agents: { id: string }[] }>('/agents')
  const { room_id: room } = await server.api<{ room_id: string }>('/skills/shown/training', { agent_id: agents[0]?.id })
  const answer = async (text: string): Promise<string> => {
    await server.api(`/rooms/${room}/messages`, { text: script(text) })
    for (;;) {
      const { messages } = await server.api<{ messages: { id: string; text: string; status: string }[] }>(`/rooms/${room}/messages`)
      const last = messages.at(-1)
      if (last?.status === 'complete' && last.text === text) return last.id
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  const first = await answer('I read `src/frame.rs`. **One bug**: the last frame is lost where it has no newline.')
  for (const score of [2, 3, 3, 4, 5, 4, 5]) {
    await server.api('/skills/shown/training/rounds', { message_id: first, score, comment: 'It missed the second one.', issues: ['no line numbers'], improvements: ['check the bounds of every loop'] })
  }
  const better = await answer('I would say more about loops:\n\n````skill\n# How to review\n\n1. Read `{{path}}` as a whole.\n2. Name each bug with its line.\n3. Check the bounds of every loop.\n````\n')
  await server.api('/skills/shown/training/proposals', { message_id: better })
}

/** As a person drops a file on an element; there is no other way to make a drop with files in a page. */
async function dropFile(page: Page, target: Locator, name: string): Promise<void> {
  const data = await page.evaluateHandle((file) => {
    const transfer = new DataTransfer()
    transfer.items.add(new File(['some notes'], file, { type: 'text/markdown' }))
    return transfer
  }, name)
  await target.dispatchEvent('dragover', { dataTransfer: data })
  await target.dispatchEvent('drop', { dataTransfer: data })
}
