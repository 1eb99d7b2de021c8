import { describe, expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { RoomView } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

describe.each(['light', 'dark', 'phone'] as const)('in the form %s', (form) => {
  it('the first page says what this is, how to connect an agent, and what to try', async () => {
    const page = await stage.page('/', forms[form])
    await page.getByRole('heading', { name: 'Greenroom runs AI agents in rooms' }).waitFor()
    const connect = page.getByRole('region', { name: 'Connect an agent' })
    const claude = connect.getByRole('listitem').filter({ hasText: 'Claude Code' }).first()
    // Either it is there, and one click leads to it, or it says the one thing to do.
    expect(await claude.innerText()).toMatch(/Chat|claude/)
    expect(await page.getByRole('region', { name: 'Create your own agent' }).getByRole('link').count()).toBe(6)
    expect(await inspect(page, 'first-run', form)).toEqual([])
  })
})

it('the demo agent is asked in plain words: streaming, a tool, an approval, a question, and stopping', async () => {
  const page = await stage.page('/')
  const room = new RoomView(page)
  await page.getByRole('button', { name: /^Look at the clock/ }).click()
  await room.hears(/I used look/)
  expect(await page.getByRole('log').innerText()).not.toContain('!tool')
  await room.say('List the files in this folder.')
  await page.getByText('Allow scripted to run Bash?').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await page.getByText('Allowed', { exact: true }).waitFor()
  await room.say('Ask me which color I like')
  await page.getByText('Which color do you like?').first().waitFor()
  await page.getByText('Green', { exact: true }).click()
  await room.hears(/Thank you/)
  await room.say('Work until I stop you')
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  await page.getByText(/^Stopped/).first().waitFor()
})

it('an agent begins with a template', async () => {
  const page = await stage.page('/agents/new?template=critic')
  await page.getByRole('heading', { name: 'New agent' }).waitFor()
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Critic')
  expect(await page.getByLabel('Instructions').inputValue()).toContain('Question assumptions')
  await page.getByRole('region', { name: 'Templates' }).getByRole('link', { name: /^Coder/ }).click()
  await page.getByText('careful software engineer').waitFor()
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Coder')
  expect(await inspect(page, 'templates', 'light')).toEqual([])
})
