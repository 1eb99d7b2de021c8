import { readFile } from 'node:fs/promises'
import { beforeAll, expect, it } from 'vitest'
import { doEverything } from './harness/deeds'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()
beforeAll(async () => {
  await doEverything(stage)
})

it('adds up what was used, and says what has no known price', async () => {
  const page = await stage.page('/usage')
  const totals = page.locator('dl').first()
  await totals.filter({ hasText: /Cost\s*\$0\.0\d+\s*\+ unknown for 1 run/ }).waitFor()
  await totals.filter({ hasText: /Runs\s*6/ }).waitFor()
  const table = page.getByRole('table', { name: 'Usage by agent' })
  await table.getByRole('row').filter({ hasText: 'Reviewer' }).waitFor()
  expect(await table.getByRole('row').count()).toBe(3)
})

it('draws columns that a keyboard reads out', async () => {
  const page = await stage.page('/usage?range=month&show=tokens')
  const chart = page.getByRole('group', { name: /^Usage over time/ })
  await chart.waitFor()
  expect(await chart.getByRole('img').count()).toBe(30)
  await chart.locator('[tabindex="0"]').focus()
  await page.locator('figcaption').filter({ hasText: /: [\d.]+k tokens, Reviewer [\d.]+k, scripted \d+/ }).waitFor()
  await page.keyboard.press('ArrowLeft')
  await page.locator('figcaption').filter({ hasText: 'nothing' }).waitFor()
  const heights = await chart.locator('rect[data-hue]').evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect().height))
  expect(Math.max(...heights)).toBeGreaterThan(50)
  await page.getByText('Show as table').click()
  expect(await page.getByRole('table', { name: 'Tokens over time' }).getByRole('row').count()).toBe(2)
})

it('is grouped and cut by what the address says', async () => {
  const page = await stage.page('/usage')
  await page.getByText('By model', { exact: true }).click()
  await page.getByRole('table', { name: 'Usage by model' }).getByRole('row').filter({ hasText: /a-model-of-our-own\s*unknown/ }).waitFor()
  await page.getByText('24 hours', { exact: true }).click()
  await page.waitForURL(/by=model&range=day|range=day&by=model/)
  await page.waitForFunction(() => document.querySelectorAll('[data-column]').length === 24)
  await page.getByText('Custom range', { exact: true }).click()
  await page.getByLabel('From', { exact: true }).fill('2020-01-01')
  await page.getByLabel('to', { exact: true }).fill('2020-01-03')
  await page.getByText('No usage in this period').waitFor()
  await page.reload()
  await page.getByText('No usage in this period').waitFor()
})

it('leads from an agent to its runs', async () => {
  const page = await stage.page('/usage')
  await page.getByRole('link', { name: 'Reviewer' }).click()
  await page.waitForURL(/\/runs\?agent=/)
  await page.getByRole('table', { name: 'Runs, newest first' }).waitFor()
})

it('exports what it shows', async () => {
  const page = await stage.page('/usage?by=model')
  await page.getByRole('table', { name: 'Usage by model' }).waitFor()
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export CSV' }).click()])
  expect(file.suggestedFilename()).toMatch(/^usage-by-model-.*\.csv$/)
  const text = await readFile(await file.path(), 'utf8')
  expect(text).toContain('time,model,model_key,runs')
  expect(text).toMatch(/claude-sonnet-4-5,claude-sonnet-4-5,1,1,0,0,4200,612,18000,0,/)
})
