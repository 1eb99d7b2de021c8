import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { ModelDouble } from './harness/model-double'
import { Stage } from './harness/stage'

let models: ModelDouble
let stage: Stage

beforeAll(async () => {
  models = await ModelDouble.start('Hello.')
  stage = await Stage.open({ ANTHROPIC_BASE_URL: '', ANTHROPIC_API_KEY: '', ANTHROPIC_AUTH_TOKEN: '' })
})
afterEach(() => stage.closeBrowsers())
afterAll(async () => {
  await stage.close()
  await models.stop()
  // The last test pastes a key where the network ends: the browser reports the failed trial too.
  expect(stage.complaints.filter((complaint) => !complaint.includes('status of 422'))).toEqual([])
})

it.each(['light', 'dark', 'phone'] as const)('a key is set, tried at once and never shown again, in the form %s', async (form) => {
  const page = await stage.page('/settings/providers', forms[form])
  const row = page.getByRole('list', { name: 'Model APIs' }).getByRole('listitem').filter({ hasText: 'Anthropic' })
  await row.getByText('API key missing', { exact: true }).waitFor()
  expect(await inspect(page, 'providers', form)).toEqual([])
  await row.getByRole('button', { name: /^Settings of/ }).click()
  const settings = row.getByRole('form')
  await settings.getByLabel('Address', { exact: true }).fill(models.url)
  await settings.getByLabel('API key', { exact: true }).fill('sk-ant-wrong')
  await settings.getByRole('button', { name: 'Save and test', exact: true }).click()
  await settings.getByText(/^Saved, but the test failed/).waitFor()
  await settings.getByLabel('API key', { exact: true }).fill(models.key)
  await settings.getByRole('button', { name: 'Save and test', exact: true }).click()
  await settings.getByText(/^Saved\. /).waitFor()
  await row.getByText('Ready', { exact: true }).waitFor()
  expect(await settings.getByLabel('API key', { exact: true }).inputValue()).toBe('')
  await expect.poll(() => settings.locator('datalist option').allTextContents()).toEqual(['Double 1'])
  expect(JSON.stringify(await stage.server.api('/providers'))).not.toContain(models.key)
  expect(await inspect(page, 'provider-form', form)).toEqual([])
  await settings.getByRole('button', { name: 'Remove settings', exact: true }).click()
  await row.getByText('API key missing', { exact: true }).waitFor()
})

it('a newcomer pastes a key on the first page, and chats', async () => {
  const page = await stage.page('/')
  await page.getByRole('button', { name: /^Add API key for Anthropic/ }).click()
  const field = page.getByLabel(/^API key of Anthropic/)
  await field.focus()
  await field.evaluate((element, key) => {
    const clipboard = new DataTransfer()
    clipboard.setData('text/plain', key)
    element.dispatchEvent(new ClipboardEvent('paste', { clipboardData: clipboard, bubbles: true, cancelable: true }))
  }, models.key)
  // It is stored, and tried at once, here without a network.
  await page.getByRole('button', { name: /^Chat with Anthropic/ }).click({ timeout: 30_000 })
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
})
