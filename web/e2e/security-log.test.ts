import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

const base = { created_at: '2026-11-17T12:00:00Z', role: 'owner', credential: 'browser_session', user_id: '00000000-0000-0000-0000-000000000001', user_name: 'Ada', address: '10.0.0.7', count: 1 }
const first = [
  { ...base, id: 9, action: 'revoke', object: 'token', object_id: 'ci' },
  { ...base, id: 8, action: 'refuse', object: 'request', object_id: 'POST /api/agents', user_id: null, user_name: null, role: 'none', credential: 'none', count: 40, detail: { status: 401 } },
  { ...base, id: 7, action: 'sign_in', object: 'browser_session', object_id: '01a1ea98-51e8-7596-8c5e-c8bd7003e5b2' },
]
const older = [{ ...base, id: 3, action: 'create', object: 'budget', object_id: '01a1ea98-51e8-7596-8c5e-c8bd7003e5b2' }]

/** Answers as the endpoint does: two pages, and a filter by action. */
async function serveLog(page: Page): Promise<void> {
  await page.route('**/api/audit?*', (route) => {
    const query = new URL(route.request().url()).searchParams
    const entries = (query.get('before') === '7' ? older : first).filter((entry) => !query.has('action') || entry.action === query.get('action'))
    return route.fulfill({ json: { entries, next: query.has('before') || query.has('action') ? null : '7' } })
  })
}

it('tells in sentences who did what, page by page, and by action', async () => {
  const page = await stage.page('/settings')
  await serveLog(page)
  await page.getByRole('link', { name: 'Open the log' }).click()
  const entries = page.getByRole('list', { name: 'Entries' }).getByRole('listitem')
  await entries.filter({ hasText: 'Ada revoked token ‘ci’' }).filter({ hasText: 'in a browser, from 10.0.0.7, as owner' }).waitFor()
  await entries.filter({ hasText: 'Someone who was not signed in was refused POST /api/agents (401), 40 times within a minute' }).waitFor()
  await page.getByRole('button', { name: 'Show older entries' }).click()
  await entries.filter({ hasText: 'Ada created a budget' }).waitFor()
  expect(await entries.count()).toBe(4)
  await page.getByRole('combobox', { name: 'Action' }).selectOption({ label: 'Sign-ins' })
  await page.waitForURL(/action=sign_in/)
  await entries.filter({ hasText: 'revoked' }).waitFor({ state: 'detached' })
  await expect.poll(() => entries.count()).toBe(1)
})

it.each(['light', 'dark', 'phone'] as const)('is without a barrier in the form %s', async (form) => {
  const page = await stage.page('/settings', forms[form])
  await serveLog(page)
  await page.goto(`${stage.url}/settings/security-log`)
  await page.getByText('Ada revoked').waitFor()
  expect(await inspect(page, 'security-log', form)).toEqual([])
})
