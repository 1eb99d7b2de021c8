import { expect, it } from 'vitest'
import { inspect } from './harness/forms'
import { openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

// A message that is refused is what these tests are about, and a browser tells of each.
const stage = stageForTests(/status of 402/)

const spend = `!script ${JSON.stringify([{ text: 'Done.' }, { usage: { input_tokens: 4200, output_tokens: 612, model: 'claude-sonnet-4-5' } }])}`

it('a budget is created, changed and deleted on the usage page', async () => {
  const page = await stage.page('/usage')
  const budgets = page.getByRole('region', { name: 'Budgets' })
  await budgets.getByText('No budgets').waitFor()
  await budgets.getByRole('button', { name: 'New budget' }).click()
  await page.getByText('Agent', { exact: true }).click()
  await page.getByRole('combobox', { name: 'Agent' }).selectOption({ label: 'scripted' })
  await page.getByText('Day', { exact: true }).click()
  await page.getByLabel('Limit in US dollars').fill('2.50')
  expect(await inspect(page, 'new-budget', 'light')).toEqual([])
  await page.getByRole('button', { name: 'Create budget' }).click()
  const row = budgets.getByRole('listitem')
  await row.filter({ hasText: /Agent scripted.*\$2\.50 a day.*\$0 of \$2\.50 spent · Resets/ }).waitFor()

  await budgets.getByRole('button', { name: 'Change the budget of Agent scripted' }).click()
  await page.getByLabel('Limit in US dollars').fill('4')
  await page.getByRole('button', { name: 'Save' }).click()
  await row.filter({ hasText: '$4.00 a day' }).waitFor()
  expect(await row.count()).toBe(1)

  await budgets.getByRole('button', { name: 'Delete the budget of Agent scripted' }).click()
  await page.getByRole('button', { name: 'Delete budget' }).click()
  await budgets.getByText('No budgets').waitFor()
})

it('a room whose budget is used up says so, refuses with the time of the reset, and leads to the budget', async () => {
  const view = await openRoom(stage, 'Expensive')
  const { page } = view
  const room = new URL(page.url()).pathname.split('/').at(-1)
  await stage.server.api('/budgets', { scope: 'room', id: room, period: 'day', limit_usd: 0.001 })
  await page.reload()
  await view.say(spend)
  await view.hears('Done.')
  await page.getByRole('status').filter({ hasText: /^This room’s budget is used up .*messages are refused\. Resets/ }).waitFor()
  await view.say('One more')
  const refused = page.getByRole('alert').filter({ hasText: /Not sent: The budget is used up: \$0\.0\d+ of \$0\.0010 spent\. Resets/ })
  await refused.waitFor()
  for (const form of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: form })
    expect(await inspect(page, 'budget-used-up', form)).toEqual([])
  }
  await refused.getByRole('link', { name: 'Budgets' }).click()
  await page.getByRole('listitem').filter({ hasText: /Room Expensive.*used up/ }).waitFor()
})

it('the chart of costs has a line for the limit of the workspace', async () => {
  await stage.server.api('/budgets', { scope: 'workspace', period: 'day', limit_usd: 0.03 })
  const page = await stage.page('/usage')
  await page.getByRole('img', { name: 'Daily limit $0.030' }).waitFor()
  for (const form of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: form })
    expect(await inspect(page, 'usage-budgets', form)).toEqual([])
  }
  await page.setViewportSize({ width: 360, height: 740 })
  await page.getByRole('heading', { name: 'Budgets' }).scrollIntoViewIfNeeded()
  expect(await inspect(page, 'usage-budgets', 'phone')).toEqual([])
})
