import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Deeds, doEverything } from './harness/deeds'
import { forms, inspect } from './harness/forms'
import { stageForTests } from './harness/stage-for-tests'

const inForms = ['light', 'dark', 'phone', 'wide']

/** Many pages in one test, on a machine that may be busy. */
const patience = 180_000

interface Scene {
  name: string
  path: string
  prepare: (page: Page) => Promise<unknown>
}

/** Runs, usage and settings, and each dialog of theirs. */
function scenes(deeds: Deeds): Scene[] {
  const list = (page: Page) => page.getByRole('table', { name: 'Runs, newest first' }).waitFor()
  const timeline = (page: Page) => page.getByRole('heading', { name: 'Timeline' }).waitFor()
  const checked = (page: Page) => page.getByText(/^Greenroom \d/).waitFor()
  return [
    { name: 'runs', path: '/runs', prepare: list },
    { name: 'runs-filtered', path: `/runs?status=completed&agent=${deeds.reviewer}&since=day`, prepare: list },
    { name: 'runs-none', path: '/runs?status=queued', prepare: (page) => page.getByText('No runs match.').waitFor() },
    { name: 'run', path: `/runs/${deeds.priced}`, prepare: timeline },
    {
      name: 'run-step',
      path: `/runs/${deeds.priced}`,
      prepare: async (page) => {
        await timeline(page)
        await page.getByRole('button', { name: /Tool: Bash/ }).focus()
        await page.keyboard.press('Enter')
      },
    },
    { name: 'run-failed', path: `/runs/${deeds.failed}`, prepare: timeline },
    { name: 'run-stopped', path: `/runs/${deeds.stopped}`, prepare: timeline },
    { name: 'run-waiting', path: `/runs/${deeds.waiting}`, prepare: timeline },
    { name: 'run-unpriced', path: `/runs/${deeds.unpriced}`, prepare: timeline },
    { name: 'run-missing', path: '/runs/00000000-0000-7000-8000-000000000000', prepare: (page) => page.getByText('Run not found').waitFor() },
    { name: 'usage', path: '/usage', prepare: (page) => page.getByRole('table', { name: 'Usage by agent' }).waitFor() },
    {
      name: 'usage-hours',
      path: '/usage?range=day&by=model&show=tokens',
      prepare: async (page) => {
        await page.getByText('Show as table').click()
        await page.locator('[data-column="23"]').focus()
      },
    },
    { name: 'usage-none', path: '/usage?from=2020-01-01&to=2020-01-05', prepare: (page) => page.getByText('No usage in this period').waitFor() },
    { name: 'settings', path: '/settings', prepare: checked },
    {
      name: 'new-token',
      path: '/settings',
      prepare: async (page) => {
        await checked(page)
        await page.getByRole('button', { name: 'New token' }).click()
        await page.getByRole('dialog').waitFor()
      },
    },
  ]
}

/** What one sees who is not signed in yet. */
function guarded(token: string): Scene[] {
  return [
    { name: 'sign-in', path: '/settings', prepare: (page) => page.getByLabel('Token').waitFor() },
    {
      name: 'sign-in-wrong',
      path: '/settings',
      prepare: async (page) => {
        await page.getByLabel('Token').fill('grm_wrong')
        await page.keyboard.press('Enter')
        await page.getByRole('alert').waitFor()
      },
    },
    {
      name: 'settings-accounts',
      path: '/settings',
      prepare: async (page) => {
        await page.getByLabel('Token').fill(token)
        await page.keyboard.press('Enter')
        await page.getByRole('button', { name: 'Revoke first' }).waitFor()
        await page.getByText(/^Greenroom \d/).waitFor()
      },
    },
    {
      name: 'token-shown',
      path: '/settings',
      prepare: async (page) => {
        await page.getByRole('button', { name: 'New token' }).click()
        await page.getByLabel('Name', { exact: true }).fill('nightly job')
        await page.getByLabel("Your token or the server's key").fill(token)
        await page.keyboard.press('Enter')
        await page.getByText('You won’t see it again').waitFor()
      },
    },
    {
      name: 'revoke-token',
      path: '/settings',
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Revoke first' }).click()
        await page.getByRole('dialog').waitFor()
      },
    },
    {
      name: 'sign-in-again',
      path: '/settings',
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Revoke first' }).waitFor()
        await page.context().clearCookies()
        await page.getByRole('button', { name: 'Check again' }).click()
        await page.getByRole('heading', { name: 'Sign in again' }).waitFor()
      },
    },
  ]
}

const stage = stageForTests(/status of 401/)
let deeds: Deeds
beforeAll(async () => {
  deeds = await doEverything(stage)
})

async function lookAt(form: string, all: readonly Scene[], isSignedIn = true): Promise<void> {
  const barriers: string[] = []
  const page = await stage.page('/', { ...forms[form], reducedMotion: 'reduce' }, isSignedIn)
  for (const scene of all) {
    await page.goto(stage.url + scene.path)
    await scene.prepare(page)
    barriers.push(...(await inspect(page, scene.name, form, form !== 'wide')))
  }
  expect(barriers).toEqual([])
}

describe('every page is within its width, without a barrier, and pictured', () => {
  it.each(inForms)('in the form %s', (form) => lookAt(form, scenes(deeds)), patience)
})

describe('so is every page of who has to sign in', () => {
  let token: string
  beforeAll(async () => {
    token = (await stage.server.api<{ token: string }>('/tokens', { name: 'first', scopes: ['read', 'run', 'approve', 'admin'] })).token
  })
  it.each(inForms)('in the form %s', (form) => lookAt(form, guarded(token), false), patience)
})
