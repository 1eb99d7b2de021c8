import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Deeds, doEverything } from './harness/deeds'
import { injections } from './harness/injections'
import { command } from './harness/palette'
import { RoomView, openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()
let deeds: Deeds
beforeAll(async () => {
  deeds = await doEverything(stage)
})

const rows = (page: Page) => page.getByRole('table', { name: 'Runs, newest first' }).getByRole('row')

/** Waits for a list of just this many, besides its head. */
async function hasRows(page: Page, count: number): Promise<void> {
  await page.waitForFunction((wanted) => document.querySelectorAll('table tbody tr').length === wanted, count)
}

describe('the list of runs', () => {
  it('is narrowed by status, agent, room and time, which the address keeps', async () => {
    const page = await stage.page('/runs')
    await hasRows(page, 6)
    await page.getByLabel('Status', { exact: true }).selectOption('Failed')
    await hasRows(page, 1)
    expect(await rows(page).nth(1).innerText()).toMatch(/Reviewer\s+!fail over_loaded[^]*Parser review\s+Failed/)
    expect(new URL(page.url()).search).toBe('?status=failed')
    await page.reload()
    await hasRows(page, 1)
    await page.getByRole('button', { name: 'Show all' }).click()
    await hasRows(page, 6)
    await page.getByLabel('Agent', { exact: true }).selectOption('Reviewer')
    await hasRows(page, 5)
    await page.getByLabel('Room', { exact: true }).selectOption('Small talk')
    await page.getByText('No runs match.').waitFor()
    await page.goBack()
    await hasRows(page, 5)
    await page.getByLabel('Time', { exact: true }).selectOption('Last hour')
    await page.waitForURL(/since=hour/)
    await hasRows(page, 5)
  })

  it('goes back page by page', async () => {
    const { agents } = await stage.server.api<{ agents: { id: string }[] }>('/agents')
    const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Many', agents: [agents[0]?.id] })
    for (let i = 0; i < 60; i += 1) await stage.server.api(`/rooms/${id}/messages`, { text: '!count 1' })
    const page = await stage.page(`/runs?room=${id}`)
    await hasRows(page, 50)
    await page.getByRole('link', { name: 'Older runs' }).click()
    await hasRows(page, 10)
    await page.getByRole('link', { name: 'Newest runs' }).click()
    await hasRows(page, 50)
  })

  it('shows a run begin, wait and end while one looks on', async () => {
    const room = await openRoom(stage, 'Watched')
    const page = await room.page.context().newPage()
    await page.goto(`${stage.url}/runs?room=${new URL(room.page.url()).pathname.split('/').pop()}`)
    await page.getByText('No runs match.').waitFor()
    await room.say('!ask Bash {"cmd":"ls"}')
    await rows(page).filter({ hasText: 'Waiting for approval' }).waitFor()
    await room.button(/^Allow$/).click()
    await rows(page).filter({ hasText: 'Completed' }).waitFor()
  })
})

it('is all done without a mouse: from a room to why a run failed', async () => {
  const page = await stage.page(`/rooms/${deeds.room}`)
  await new RoomView(page).field.waitFor()
  await command(page, 'runs page', /^Runs/)
  await page.getByRole('table', { name: 'Runs, newest first' }).waitFor()
  await tabTo(page, () => document.activeElement?.matches('select') ?? false)
  await page.keyboard.type('Failed')
  await page.waitForURL(/status=failed/)
  await hasRows(page, 1)
  await tabTo(page, () => document.activeElement?.matches('tbody a') ?? false)
  await page.keyboard.press('Enter')
  await page.getByRole('region', { name: 'Why it failed' }).waitFor()
})

describe('one run', () => {
  it('says what an answer cost, from the room on', async () => {
    const room = new RoomView(await stage.page(`/rooms/${deeds.room}`))
    await room.answers.filter({ hasText: 'The last frame is lost' }).getByRole('link', { name: 'Details' }).click()
    await room.page.waitForURL(`**/runs/${deeds.priced}`)
    const facts = room.page.locator('dl').first()
    await facts.filter({ hasText: /Cost\s*\$0\.0\d+/ }).waitFor()
    await facts.filter({ hasText: '4.2k in, 612 out, 18k from cache' }).waitFor()
    await room.page.getByRole('link', { name: 'Show it in the room' }).click()
    await room.page.waitForURL(/\/rooms\/.*\?m=\d+/)
    await room.page.getByText('The last frame is lost where it has no newline.', { exact: true }).waitFor()
  })

  it('is drawn as a timeline that a keyboard reaches and a table repeats', async () => {
    const page = await stage.page(`/runs/${deeds.priced}`)
    const picture = page.getByRole('group', { name: /^Timeline/ })
    await picture.getByRole('button', { name: /Tool: Grep/ }).waitFor()
    const names = await picture.getByRole('button').evaluateAll((bars) => bars.map((bar) => bar.getAttribute('aria-label') ?? ''))
    for (const tool of ['Grep', 'Read', 'Bash']) expect(names.filter((name) => name.includes(`Tool: ${tool}`))).toHaveLength(1)
    expect(names.filter((name) => name.startsWith('Model call')).length).toBeGreaterThan(1)
    expect(names.find((name) => name.includes('Bash'))).toContain('failed')
    // Beginnings may be on the same millisecond, so the rows are matched by their names.
    const steps = await page.getByRole('table', { name: 'The steps of this run' }).getByRole('rowheader').allInnerTexts()
    expect(steps).toHaveLength(names.length)
    await tabTo(page, () => document.activeElement?.hasAttribute('data-bar') ?? false)
    await page.keyboard.press('End')
    await page.keyboard.press('Enter')
    expect(await page.locator('[data-chosen]').innerText()).toContain(steps.at(-1))
  })

  it('says why it failed and what to do', async () => {
    const page = await stage.page(`/runs/${deeds.failed}`)
    const end = page.getByRole('region', { name: 'Why it failed' })
    expect(await end.innerText()).toMatch(/over capacity.*retry.*Error code: over_loaded/s)
  })

  it('says what stopping took', async () => {
    const page = await stage.page(`/runs/${deeds.stopped}`)
    await page.getByRole('region', { name: 'How it was stopped' }).filter({ hasText: 'Stopped' }).waitFor()
  })

  it('does not take an unknown price for nothing', async () => {
    const page = await stage.page(`/runs/${deeds.unpriced}`)
    await page.locator('dl').filter({ hasText: /Cost\s*unknown/ }).waitFor()
  })

  it('can be stopped here', async () => {
    const room = await openRoom(stage, 'Ended from afar')
    await room.say('!hang')
    await room.hears('Hanging')
    await room.page.getByRole('link', { name: 'Runs', exact: true }).click()
    await rows(room.page).filter({ hasText: 'Ended from afar' }).getByRole('link').click()
    await room.page.getByRole('button', { name: 'Stop' }).click()
    await room.page.getByRole('region', { name: 'How it was stopped' }).waitFor()
    await room.page.getByRole('button', { name: /^Stop/ }).waitFor({ state: 'detached' })
  })

  it('shows what models say and are called as text', async () => {
    const hostile = injections[0] ?? ''
    const room = await openRoom(stage, 'Hostile')
    await room.say(`!script ${JSON.stringify([{ text: 'Done.' }, { usage: { input_tokens: 1, model: hostile } }])}`)
    await room.lastAnswer.getByRole('link', { name: 'Details' }).click()
    await room.page.getByRole('rowheader', { name: `Model call: ${hostile}` }).waitFor()
    await room.page.goto(`${stage.url}/usage?by=model`)
    await room.page.getByRole('rowheader', { name: hostile }).waitFor()
    const { id } = await failWith(hostile)
    await room.page.goto(`${stage.url}/runs/${id}`)
    await room.page.getByRole('region', { name: 'Why it failed' }).getByText(hostile).waitFor()
    expect(await room.page.evaluate(() => 'pwned' in globalThis)).toBe(false)
  })

  it('that is not there says so', async () => {
    const page = await stage.page('/runs/00000000-0000-7000-8000-000000000000')
    await page.getByText('Run not found').waitFor()
  })
})

async function failWith(message: string): Promise<{ id: string }> {
  const { runs } = await stage.server.api<{ runs: { id: string }[] }>(`/rooms/${deeds.room}/messages`, { text: `!fail hostile ${message}`, when_busy: 'interrupt' })
  return { id: runs[0]?.id ?? '' }
}

async function tabTo(page: Page, isThere: () => boolean): Promise<void> {
  for (let i = 0; i < 60; i += 1) {
    await page.keyboard.press('Tab')
    if (await page.evaluate(isThere)) return
  }
  throw new Error('the Tab key never came there')
}
