import { get } from 'node:http'
import { expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { stageForTests } from './harness/stage-for-tests'

/** The frame of a preview is another origin, on purpose. */
const stage = stageForTests(/^a request left for http:\/\/[0-9a-f]+\.preview\.localhost:/)

it.each(['light', 'dark', 'phone'] as const)('a command runs in the sandbox, its output comes live and in colors, in the form %s', async (form) => {
  const { id } = await stage.server.api<{ id: string }>('/projects', { name: `Commands ${form}` })
  const page = await stage.page(`/projects/${id}?tab=commands`, forms[form])
  await page.getByLabel('Command', { exact: true }).fill(`printf '\\033[31mred\\033[0m plain\\n'; touch made.txt; sleep 2; echo done; exit 3`)
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  const output = page.getByRole('log', { name: 'Output' })
  await output.getByText('red', { exact: true }).waitFor()
  // Live: the command has not ended.
  expect(await output.innerText()).not.toContain('done')
  const colors = await output.getByText('red', { exact: true }).evaluate((piece) => [getComputedStyle(piece).color, getComputedStyle(piece.parentElement ?? piece).color])
  expect(colors[0]).not.toBe(colors[1])
  await output.getByText('done').waitFor()
  await page.getByRole('list', { name: 'Commands' }).getByText('exit code 3').waitFor()
  expect(await inspect(page, 'project-commands', form)).toEqual([])
  await page.getByRole('navigation', { name: 'Parts of the project' }).getByRole('link', { name: 'Files', exact: true }).click()
  await page.getByRole('link', { name: 'made.txt', exact: true }).waitFor()
})

it('a command is stopped, and its output stays', async () => {
  const { id } = await stage.server.api<{ id: string }>('/projects', { name: 'Stops' })
  const page = await stage.page(`/projects/${id}?tab=commands`)
  await page.getByLabel('Command', { exact: true }).fill('echo begun; sleep 600')
  await page.keyboard.press('Enter')
  const output = page.getByRole('log', { name: 'Output' })
  await output.getByText('begun').waitFor()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  await page.getByRole('list', { name: 'Commands' }).getByText('stopped', { exact: true }).waitFor()
  await page.reload()
  await output.getByText('begun').waitFor()
})

it('what listens in the sandbox is seen on an origin of its own', async () => {
  const { id } = await stage.server.api<{ id: string }>('/projects', { name: 'Ports' })
  await stage.server.fetch(`/projects/${id}/files/content?path=index.html`, { method: 'PUT', body: '<h1>Hello from the sandbox</h1>' })
  const page = await stage.page(`/projects/${id}?tab=commands`)
  await page.getByLabel('Command', { exact: true }).fill('python3 -m http.server 8123')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Preview port 8123', exact: true }).click()
  const link = page.getByRole('link', { name: 'Open the preview of port 8123', exact: true })
  await link.waitFor()
  const address = new URL((await link.getAttribute('href')) ?? '')
  expect(address.hostname).toMatch(/\.preview\.localhost$/)
  // Asked of the server itself, by the name of the preview: the test's page stands on another port.
  const seen = await new Promise<string>((resolve, reject) => {
    get({ host: '127.0.0.1', port: stage.server.port, path: address.pathname, headers: { host: address.host, accept: 'text/html' } }, (response) => {
      let body = `${response.statusCode} `
      response.on('data', (part: Buffer) => (body += part.toString()))
      response.on('end', () => resolve(body))
    }).on('error', reject)
  })
  expect(seen).toBe('200 <h1>Hello from the sandbox</h1>')
  // In a frame of the page, and as another origin: it reaches nothing of the page around it.
  const frame = page.frameLocator('iframe[title="Preview of port 8123"]')
  const heading = frame.getByRole('heading', { name: 'Hello from the sandbox' })
  await heading.waitFor()
  const reached = await heading.evaluate(() => {
    try {
      return window.parent.document.title
    } catch (error) {
      return String(error)
    }
  })
  expect(reached).toContain('SecurityError')
  await page.getByRole('button', { name: 'Close the preview of port 8123', exact: true }).click()
  await page.getByRole('button', { name: 'Preview port 8123', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
})
