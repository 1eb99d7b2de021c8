import { expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

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
