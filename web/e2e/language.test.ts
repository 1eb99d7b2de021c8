import { describe, expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { RoomView } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

it('German is chosen in the settings, at once and for good', async () => {
  const page = await stage.page('/settings')
  await page.getByText('Deutsch', { exact: true }).click()
  await page.getByRole('heading', { name: 'Einstellungen', level: 1 }).waitFor()
  expect(await page.locator('html').getAttribute('lang')).toBe('de')
  await page.reload()
  await page.getByRole('heading', { name: 'Darstellung' }).waitFor()
  await page.getByText('English', { exact: true }).click()
  await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor()
})

it('a browser that prefers German gets it, and English loads no other table', async () => {
  const german = await stage.page('/', { locale: 'de-DE' })
  const room = new RoomView(german)
  await german.getByRole('heading', { name: 'Greenroom lässt KI-Agenten in Räumen arbeiten' }).waitFor()
  await german.getByRole('textbox', { name: 'Nachricht' }).fill('!count 3 10')
  await german.keyboard.press('Enter')
  await room.page.getByText('1 2 3', { exact: false }).first().waitFor()
  await german.getByText('Heute', { exact: true }).first().waitFor()

  const english = await stage.browser({ locale: 'en-GB' })
  const page = await english.newPage()
  const loaded: string[] = []
  page.on('request', (request) => loaded.push(request.url()))
  await page.goto(`${stage.url}/settings`)
  await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor()
  expect(loaded.filter((url) => url.includes('german'))).toEqual([])
})

describe.each(['light', 'dark', 'phone'] as const)('in German, in the form %s', (form) => {
  it('every page is within its width and without a barrier', async () => {
    const barriers: string[] = []
    const page = await stage.page('/', { ...forms[form], locale: 'de-DE', reducedMotion: 'reduce' })
    await page.getByRole('textbox', { name: 'Nachricht' }).waitFor()
    const paths = ['/', '/agents', '/agents/new', '/skills', '/skills/new', '/mcp-servers', '/mcp-servers/new', '/approvals', '/runs', '/usage', '/settings', '/settings/security-log', '/nowhere']
    for (const path of paths) {
      await page.goto(stage.url + path)
      await page.getByRole('heading').first().waitFor()
      await page.waitForLoadState('networkidle')
      barriers.push(...(await inspect(page, `german${path.replaceAll('/', '-')}`, form, true)))
    }
    expect(barriers).toEqual([])
  })
})
