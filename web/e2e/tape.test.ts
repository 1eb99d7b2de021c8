import { expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

it.each(['light', 'dark'] as const)('who is next is shown, paused and skipped, in the form %s', async (form) => {
  const made = await Promise.all(['Ada', 'Bob', 'Cyd'].map((name) => stage.server.api<{ id: string }>('/agents', { name: `${name} ${form}`, provider: 'scripted' })))
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: `Team ${form}`, agents: made.map((agent) => agent.id) })
  const page = await stage.page(`/rooms/${id}`, forms[form])
  await page.getByRole('button', { name: 'Members', exact: true }).click()
  const members = page.getByRole('complementary', { name: 'Members' })
  await members.getByLabel('Who answers a message').selectOption({ label: 'Debate' })
  const next = members.getByRole('region', { name: 'Up next' })
  await next.getByText('Nobody is waiting to answer.').waitFor()
  await page.getByRole('textbox', { name: 'Message' }).fill('!hang')
  await page.keyboard.press('Enter')
  await next.getByText(/answering/).first().waitFor()
  await next.getByText(/planned/).first().waitFor()
  await next.getByRole('button', { name: 'Pause' }).click()
  await next.getByText('Paused: nobody starts until you resume.').waitFor()
  const cells = next.getByRole('listitem')
  const before = await cells.count()
  await next.getByRole('button', { name: /^Skip/ }).last().click()
  await expect.poll(() => cells.count()).toBe(before - 1)
  expect(await inspect(page, 'tape', form)).toEqual([])
  await next.getByRole('button', { name: 'Resume' }).click()
  await next.getByRole('button', { name: 'Pause' }).waitFor()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
})
