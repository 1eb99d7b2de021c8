import { beforeAll, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { type Deeds, doEverything } from './harness/deeds'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()
let deeds: Deeds
let project: string
beforeAll(async () => {
  deeds = await doEverything(stage)
  project = (await stage.server.api<{ id: string }>('/projects', { name: 'Parser', sandbox: 'none' })).id
  await stage.server.api('/skills', { name: 'review', description: 'Reviews code.', body: 'Read it.' })
  await stage.server.api('/mcp-servers', { name: 'tools', command: 'no-such-program' })
})

const lists = ['/agents', '/skills', '/mcp-servers', '/projects', '/runs', '/usage']
const forms = (): string[] => ['/agents/new', `/agents/${deeds.reviewer}`, '/skills/new', '/skills/review', '/mcp-servers/new', '/mcp-servers/tools?show=settings', '/settings', '/settings/providers', '/settings/security-log', '/search', '/approvals']

/** The bar, and the column below it. */
async function frameOf(page: Page): Promise<{ bar: number; left: number; width: number }> {
  return page.evaluate(() => {
    const heading = document.querySelector('main h1, #main h1, h1')
    const bar = heading?.closest('header')
    const column = bar?.nextElementSibling?.firstElementChild?.firstElementChild
    if (!bar || !column) throw new Error(`no frame at ${location.pathname}`)
    const style = getComputedStyle(column)
    return { bar: bar.getBoundingClientRect().height, left: Number.parseFloat(style.paddingLeft), width: Number.parseFloat(style.maxWidth) }
  })
}

it('every page has the same frame: one bar, one width for lists and one for forms', async () => {
  const page = await stage.page('/agents', { viewport: { width: 1800, height: 900 } })
  const seen = new Map<string, Awaited<ReturnType<typeof frameOf>>>()
  for (const path of [...lists, ...forms(), `/projects/${project}`, `/runs/${deeds.priced}`]) {
    await page.goto(stage.url + path)
    await page.getByRole('heading', { level: 1 }).waitFor()
    seen.set(path, await frameOf(page))
  }
  const all = [...seen.entries()]
  expect(new Set(all.map(([, { bar, left }]) => `${bar} ${left}`)).size).toBe(1)
  const widthOf = (paths: readonly string[]): Set<number> => new Set(all.filter(([path]) => paths.includes(path)).map(([, { width }]) => width))
  expect(widthOf(lists).size).toBe(1)
  expect(widthOf(forms()).size).toBe(1)
})

it('a page below another one leads back by the same trail', async () => {
  const page = await stage.page('/agents')
  for (const [path, parent] of [
    [`/agents/${deeds.reviewer}`, 'Agents'],
    ['/skills/review', 'Skills'],
    ['/mcp-servers/tools', 'MCP servers'],
    [`/projects/${project}`, 'Projects'],
    [`/runs/${deeds.priced}`, 'Runs'],
    ['/settings/providers', 'Settings'],
    ['/settings/security-log', 'Settings'],
  ] as const) {
    await page.goto(stage.url + path)
    const bar = page.locator('header').filter({ has: page.getByRole('heading', { level: 1 }) })
    await bar.getByRole('link', { name: parent, exact: true }).click()
    await page.getByRole('heading', { level: 1, name: parent, exact: true }).waitFor()
  }
})

it('forms are saved by the bar at their foot, which is there when there is something to save', async () => {
  const page = await stage.page(`/agents/${deeds.reviewer}`)
  await page.getByLabel('Name', { exact: true }).fill('Reviewer of parsers')
  await page.getByText('Unsaved changes').waitFor()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Unsaved changes').waitFor({ state: 'detached' })
  await page.goto(`${stage.url}/mcp-servers/tools?show=settings`)
  await page.getByLabel('Command', { exact: true }).waitFor()
  expect(await page.getByRole('button', { name: 'Save', exact: true }).count()).toBe(0)
  await page.getByLabel('Command', { exact: true }).fill('another-program')
  await page.getByText('Unsaved changes').waitFor()
  // Enter in a field does the same as the button.
  await page.getByLabel('Command', { exact: true }).press('Enter')
  await page.getByText(/^Saved/).waitFor()
  await page.getByText('Unsaved changes').waitFor({ state: 'detached' })
})

it('runs show what was asked', async () => {
  const page = await stage.page('/runs')
  await page.getByRole('row').filter({ hasText: 'Good morning' }).filter({ hasText: 'Small talk' }).waitFor()
  await page.getByRole('row').filter({ hasText: '!ask Bash' }).waitFor()
})

it('usage says unknown where the price is unknown', async () => {
  const page = await stage.page('/usage')
  await page.getByText(/unknown for 1 run/).first().waitFor()
})

it('an unknown address shows our page, and every known one is served as found', async () => {
  const page = await stage.page('/agents')
  if (process.env.GREENROOM_EMBEDS_UI) {
    for (const path of [...lists, ...forms(), `/projects/${project}`]) {
      const response = await page.request.get(stage.url + path, { headers: { accept: 'text/html' } })
      expect([path, response.status()]).toEqual([path, 200])
    }
  }
  await page.goto(`${stage.url}/nowhere/at/all`)
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
})

it.runIf(process.env.GREENROOM_EMBEDS_UI)('the page of the API has the colors and the fonts of the app', async () => {
  const page = await stage.page('/settings')
  const look = (): Promise<unknown[]> =>
    page.evaluate(async () => {
      await document.fonts.ready
      const { backgroundColor, color, fontFamily, fontSize } = getComputedStyle(document.body)
      // As they are painted: the build of the app writes the same colors in another notation.
      const canvas = new OffscreenCanvas(1, 1).getContext('2d')
      const painted = (style: string): number[] => {
        if (!canvas) throw new Error('no canvas')
        canvas.fillStyle = style
        canvas.fillRect(0, 0, 1, 1)
        return [...canvas.getImageData(0, 0, 1, 1).data]
      }
      return [painted(backgroundColor), painted(color), fontFamily, fontSize, document.fonts.check(`15px ${fontFamily.split(',')[0]}`)]
    })
  await page.getByRole('heading', { name: 'Settings' }).waitFor()
  const app = await look()
  await page.goto(`${stage.url}/docs`)
  await page.getByRole('heading', { name: /^Greenroom API/ }).waitFor()
  expect(await look()).toEqual(app)
  await page.screenshot({ path: new URL('../../target/screens/docs-light.png', import.meta.url).pathname })
})

it('notices cover neither the composer nor the bar of the page', async () => {
  const page = await stage.page(`/rooms/${deeds.room}`)
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
  await page.route('**/api/rooms/*/fork', (route) => route.fulfill({ status: 409, contentType: 'application/problem+json', body: '{"type":"about:blank","title":"Conflict","status":409,"code":"conflict","detail":"It cannot be done now."}' }))
  const message = page.locator('article[data-kind=person]').last()
  await message.hover()
  await message.getByRole('button', { name: 'Branch from here' }).click()
  const notice = page.getByText('It cannot be done now.')
  await notice.waitFor()
  const box = await notice.boundingBox()
  const [bar, composer] = await Promise.all([page.locator('header').first().boundingBox(), page.getByRole('form', { name: 'Message' }).boundingBox()])
  expect(box && bar && composer && box.y >= bar.y + bar.height && box.y + box.height <= composer.y).toBe(true)
})
