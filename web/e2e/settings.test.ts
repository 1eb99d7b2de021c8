import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { RoomView } from './harness/room'
import { Stage } from './harness/stage'

let stage: Stage
afterEach(() => stage.closeBrowsers())

/** Being refused is what these tests are about, and a browser tells of each time. */
async function closeCalmly(): Promise<void> {
  await stage.close()
  expect(stage.complaints.filter((complaint) => !complaint.includes('status of 401'))).toEqual([])
}

describe('as the operator', () => {
  beforeAll(async () => {
    stage = await Stage.open()
  })
  afterAll(closeCalmly)

  it('says what the server finds of itself', async () => {
    const page = await stage.page('/settings')
    const server = page.getByRole('region', { name: 'This server' })
    await server.getByText(/^Greenroom \d/).waitFor()
    expect(await server.getByRole('listitem').count()).toBeGreaterThan(2)
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
  })

  it('takes colours', async () => {
    const page = await stage.page('/settings', { colorScheme: 'light' })
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    const light = await ground()
    await page.getByText('Dark', { exact: true }).click()
    expect(await ground()).not.toBe(light)
  })

  it('a token is shown once, and a stranger sees none', async () => {
    const page = await stage.page('/settings')
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name').fill('laptop')
    await page.getByLabel("Your token or the server's key").fill(stage.server.key)
    await page.getByRole('button', { name: 'Create token' }).click()
    const token = await page.getByRole('dialog').locator('code').innerText()
    expect(token).toMatch(/^grm_/)
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('region', { name: 'Tokens' }).getByText('laptop').waitFor()
    expect(await page.content()).not.toContain(token)
    expect(await page.evaluate(() => document.cookie + JSON.stringify(localStorage))).not.toContain(token.slice(4))

    const stranger = await stage.stranger('/settings')
    await stranger.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await stranger.getByRole('button', { name: 'New token' }).count()).toBe(0)
  })
})

describe('with accounts', () => {
  let token: string
  let room: string

  beforeEach(async () => {
    stage = await Stage.open()
    const { agents } = await stage.server.api<{ agents: { id: string }[] }>('/agents')
    room = (await stage.server.api<{ id: string }>('/rooms', { name: 'Kept', agents: [agents[0]?.id] })).id
    token = (await stage.server.api<{ token: string }>('/tokens', { name: 'first', scopes: ['read', 'run', 'approve', 'admin'] })).token
  })
  afterEach(closeCalmly)

  async function signIn(page: Page, secret = token): Promise<void> {
    await page.getByLabel('Token').fill(secret)
    await page.keyboard.press('Enter')
  }

  it('asks who one is and goes where one wanted to', async () => {
    const page = await stage.stranger(`/rooms/${room}`)
    await page.getByText('greenroom token create').waitFor()
    await signIn(page, 'grm_wrong')
    await page.getByRole('alert').filter({ hasText: 'does not know that token' }).waitFor()
    await signIn(page)
    const view = new RoomView(page)
    await view.field.waitFor()
    expect(new URL(page.url()).pathname).toBe(`/rooms/${room}`)
    await view.say('!count 3')
    await view.hears('1 2 3')
    await page.reload()
    await view.hears('1 2 3')
  })

  it('a link signs in, and leaves nothing of itself in the address or the history', async () => {
    const page = await stage.stranger('/settings')
    await page.getByText('greenroom auth link').waitFor()
    const { url } = await stage.server.api<{ url: string }>('/session/links', {})
    await page.goto(`${stage.url}/sign-in?next=/rooms/${room}${new URL(url).hash}`)
    await new RoomView(page).field.waitFor()
    expect(page.url()).toBe(`${stage.url}/rooms/${room}`)
    await page.goBack()
    await page.getByRole('heading', { name: 'Settings' }).waitFor()
    expect(page.url()).toBe(`${stage.url}/settings`)
  })

  it('lets one out again, and nobody in after', async () => {
    const page = await stage.stranger('/settings')
    await signIn(page)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.goto(`${stage.url}/rooms/${room}`)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await page.getByText('Kept').count()).toBe(0)
  })

  it('a token that is revoked asks for another one over the page, and nothing typed is lost', async () => {
    const page = await stage.stranger(`/rooms/${room}`)
    await signIn(page)
    const view = new RoomView(page)
    await view.field.fill('half a thought')
    const other = await page.context().newPage()
    await other.goto(`${stage.url}/settings`)
    // Not made with the first one: it would be revoked with it.
    const second = (await stage.server.api<{ token: string }>('/tokens', { name: 'second' })).token
    await other.getByRole('button', { name: 'Revoke first' }).click()
    await other.getByText('This browser signed in with it too').waitFor()
    await other.getByRole('button', { name: 'Revoke token' }).click()
    await other.getByRole('heading', { name: 'Sign in again' }).waitFor()

    await page.bringToFront()
    // Refused, unless the page has learned of it before from the end of its line: then nothing is sent at all.
    await view.field.press('Enter')
    await page.getByRole('heading', { name: 'Sign in again' }).waitFor()
    await signIn(page, second)
    await page.getByRole('heading', { name: 'Sign in again' }).waitFor({ state: 'detached' })
    if ((await view.field.inputValue()) === '') await page.getByRole('button', { name: 'Try again' }).click()
    else await view.field.press('Enter')
    await view.hears('half a thought')
  })
})
