import { describe, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { forms, inspect } from './harness/forms'
import { firstAgent } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

const picture = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC', 'base64')

function createProject(name: string): Promise<{ id: string }> {
  return stage.server.api('/projects', { name, network: { allow: ['pypi.org'] } })
}

function write(project: string, path: string, content: string | Buffer): Promise<Response> {
  return stage.server.fetch(`/projects/${project}/files/content?path=${encodeURIComponent(path)}`, { method: 'PUT', body: content as BodyInit })
}

const tree = (page: Page) => page.getByRole('list', { name: 'Files', exact: true })

it('a project is created, says which isolation is in force, and is deleted again', async () => {
  const page = await stage.page('/projects')
  await page.getByRole('button', { name: 'New project', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'New project' })
  await dialog.getByLabel('Name', { exact: true }).fill('Website')
  await dialog.getByLabel('Allowed hosts', { exact: true }).fill('pypi.org\n*.npmjs.org')
  await dialog.getByRole('button', { name: 'Create project', exact: true }).click()
  await page.getByRole('heading', { name: 'Website', level: 1, exact: true }).waitFor()
  await page.getByText('No files yet.').waitFor()
  await page.getByRole('navigation', { name: 'Parts of the project' }).getByRole('link', { name: 'Sandbox', exact: true }).click()
  const enforced = page.getByRole('region', { name: 'What is enforced' })
  await enforced.getByText('Files outside of the project cannot be read or changed').waitFor()
  const { projects } = await stage.server.api<{ projects: { isolation: { tier: string; warnings: string[] } }[] }>('/projects')
  expect(await enforced.getByRole('list', { name: 'What is not enforced' }).getByRole('listitem').count()).toBe(projects[0]?.isolation.warnings.length)
  await page.getByText('*.npmjs.org', { exact: true }).waitFor()
  expect(await inspect(page, 'project-sandbox', 'light')).toEqual([])
  await page.getByRole('button', { name: 'Project actions', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Delete project', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete project', exact: true }).click()
  await page.getByText('No projects yet').waitFor()
})

it('files are uploaded by button, drop and paste, moved, downloaded and deleted', async () => {
  const { id } = await createProject('Uploads')
  const page = await stage.page(`/projects/${id}`)
  await page.getByText('No files yet.').waitFor()
  await page.getByLabel('Upload files', { exact: true }).setInputFiles([
    { name: 'notes.md', mimeType: 'text/markdown', buffer: Buffer.from('# Notes') },
    { name: 'data.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') },
  ])
  await tree(page).getByRole('link', { name: 'notes.md', exact: true }).waitFor()
  await tree(page).getByRole('link', { name: 'data.csv', exact: true }).click()
  await page.getByRole('region', { name: 'data.csv' }).getByText('1,2').waitFor()
  for (const kind of ['drop', 'paste']) {
    await page.evaluate((event) => {
      const files = new DataTransfer()
      files.items.add(new File([`by ${event}`], `by-${event}.txt`))
      const target = document.querySelector('main') ?? document.body
      if (event === 'drop') target.dispatchEvent(new DragEvent('drop', { dataTransfer: files, bubbles: true, cancelable: true }))
      else target.dispatchEvent(new ClipboardEvent('paste', { clipboardData: files, bubbles: true, cancelable: true }))
    }, kind)
    await tree(page).getByRole('link', { name: `by-${kind}.txt`, exact: true }).waitFor()
  }
  await page.getByRole('button', { name: 'Actions for notes.md', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Move or rename', exact: true }).click()
  await page.getByLabel('New path', { exact: true }).fill('docs/read-me.md')
  await page.getByRole('button', { name: 'Move', exact: true }).click()
  await tree(page).getByRole('button', { name: 'docs', exact: true }).click()
  await tree(page).getByRole('link', { name: 'read-me.md', exact: true }).waitFor()
  const saved = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Actions for docs', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Download as zip', exact: true }).click()
  expect((await saved).suggestedFilename()).toMatch(/docs/)
  await page.getByRole('button', { name: 'Actions for docs', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Delete', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
  await tree(page).getByRole('button', { name: 'docs', exact: true }).waitFor({ state: 'detached' })
})

it('an upload has a bar while it is sent, and a refused one says why and can be sent again', async () => {
  const { id } = await createProject('Refused')
  const page = await stage.page(`/projects/${id}`)
  let isFull = true
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  await page.route('**/files?path=', async (route) => {
    if (route.request().method() !== 'POST' || !isFull) return route.continue()
    await held
    const body = JSON.stringify({ code: 'storage_full', detail: 'The project is full. Delete files first.', title: '', status: 507 })
    return route.fulfill({ status: 507, contentType: 'application/problem+json', body })
  })
  await page.getByLabel('Upload files', { exact: true }).setInputFiles({ name: 'big.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(2_000_000, 1) })
  await page.getByRole('progressbar', { name: 'Uploading big.bin' }).waitFor()
  release()
  await page.getByText('The project is full. Delete files first.').waitFor()
  isFull = false
  await page.getByRole('button', { name: 'Retry big.bin', exact: true }).click()
  await tree(page).getByRole('link', { name: 'big.bin', exact: true }).waitFor()
})

it('a file that somebody else writes appears in an open tree', async () => {
  const { id } = await createProject('Live')
  await stage.server.api('/rooms', { name: 'Work', agents: [await firstAgent(stage)], project_id: id })
  const page = await stage.page(`/projects/${id}`)
  await page.getByText('No files yet.').waitFor()
  // The room is followed once the page knows it.
  await page.getByRole('navigation', { name: 'Parts of the project' }).getByRole('link', { name: /^Rooms\s*1$/ }).waitFor()
  await page.waitForTimeout(1000)
  await write(id, 'written.txt', 'by another')
  await tree(page).getByRole('link', { name: 'written.txt', exact: true }).waitFor({ timeout: 10_000 })
})

it('a chat of a project leads back to it', async () => {
  const { id } = await createProject('Chats')
  const page = await stage.page(`/projects/${id}?tab=rooms`)
  await page.getByRole('button', { name: 'New chat here', exact: true }).click()
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
  const { rooms } = await stage.server.api<{ rooms: { id: string; project_id: string | null }[] }>('/rooms')
  expect(rooms.find((room) => page.url().includes(room.id))?.project_id).toBe(id)
  await page.getByRole('link', { name: 'Chats', exact: true }).click()
  await page.getByRole('heading', { name: 'Chats', level: 1, exact: true }).waitFor()
})

describe.each(['light', 'dark', 'phone'] as const)('in the form %s', (form) => {
  it('the pages of projects look as they should', async () => {
    const { id } = await createProject(`Site ${form}`)
    await write(id, 'src/main.py', 'import sys\n\ndef main() -> int:\n    print("Hello", sys.argv)\n    return 0\n')
    await write(id, 'src/pages/index.html', '<h1>Hello</h1>')
    await write(id, 'logo.png', picture)
    await write(id, 'README.md', '# Site')
    const page = await stage.page('/projects', forms[form])
    await page.getByRole('link', { name: `Site ${form}`, exact: true }).waitFor()
    expect(await inspect(page, 'projects', form)).toEqual([])
    await page.goto(`${stage.url}/projects/${id}?file=src%2Fmain.py`)
    await page.getByRole('region', { name: 'src/main.py' }).getByText('print').first().waitFor()
    await tree(page).getByRole('link', { name: 'main.py', exact: true }).waitFor()
    expect(await inspect(page, 'project-files', form)).toEqual([])
    await tree(page).getByRole('link', { name: 'logo.png', exact: true }).click()
    await expect.poll(() => page.getByRole('img', { name: 'logo.png' }).evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(10)
    await page.goto(`${stage.url}/projects/${id}?tab=sandbox`)
    await page.getByText('pypi.org', { exact: true }).waitFor()
    expect(await inspect(page, 'project-sandbox', form)).toEqual([])
  })
})
