import { expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import { injections } from './harness/injections'
import { RoomView, asDeveloper } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

const all = injections.join('\n\n')

/** Whether anything ran, and whether anything is in the page that could: the policy of the page must have nothing to do. */
async function danger(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = []
    if ('pwned' in globalThis) found.push('it ran')
    for (const element of document.querySelectorAll('body *')) {
      const name = element.localName
      if (['script', 'iframe', 'object', 'embed', 'style', 'link', 'base', 'meta', 'template'].includes(name)) found.push(`<${name}>`)
      if (name === 'img' && !/^(data:image|blob:|\/api\/uploads\/)/.test(element.getAttribute('src') ?? '')) found.push(element.outerHTML)
      for (const { name: attribute, value } of element.attributes) {
        if (attribute.startsWith('on') || attribute === 'srcdoc' || attribute === 'formaction') found.push(element.outerHTML)
        if (attribute === 'href' && !/^(https?:|mailto:|\/|#|\?)/.test(value)) found.push(`href ${value}`)
      }
    }
    return found
  })
}

it('knows at least a hundred tricks', () => expect(new Set(injections).size).toBeGreaterThanOrEqual(120))

it('nothing runs wherever text of a model, a tool or a person is shown', async () => {
  const name = '<img src=x onerror=globalThis.pwned=1>'
  const agent = await stage.server.api<{ id: string }>('/agents', { name, provider: 'scripted' })
  const room = await stage.server.api<{ id: string }>('/rooms', { name: `${name} room`, agents: [agent.id] })
  const view = new RoomView(await stage.page(`/rooms/${room.id}`))
  view.page.on('dialog', (dialog) => {
    stage.complaints.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await view.field.waitFor()
  const script = [
    { status: { status: 'x', message: all } },
    { thinking: all },
    { tool_use: { id: 't', name: 'Bash', input: { command: all, [name]: injections } } },
    { tool_output: { id: 't', delta: all } },
    { tool_result: { id: 't', content: [{ type: 'text', text: all }], is_error: true } },
    { text: all },
    { approval: { name: 'Edit', input: { file_path: name, old_string: all, new_string: `${all}!` } } },
    { fail: { code: 'bad', message: all } },
  ]
  await stage.server.api(`/rooms/${room.id}/messages`, { text: `!script ${JSON.stringify(script)}` })
  await view.button(/^Deny$/).waitFor()
  for (const summary of await view.page.locator('summary').all()) await summary.click()
  expect(await danger(view.page)).toEqual([])
  await view.button(/^Edit$/).click()
  expect(await danger(view.page)).toEqual([])
  await view.button(/^Deny$/).click()
  await view.page.getByText('Error code: bad').waitFor()
  await stage.server.api(`/rooms/${room.id}/messages`, { text: all })
  await view.page.locator('article[data-kind=person]').nth(1).waitFor()
  await view.button(/^Show all/).last().click()
  expect(await danger(view.page)).toEqual([])
  await asDeveloper(view.page)
  await view.button('Show events').first().click()
  await view.page.getByText('tool_result', { exact: true }).click()
  expect(await danger(view.page)).toEqual([])
})

it('every link that is left leads to the web, in a tab of its own that knows nothing of this one', async () => {
  const page = await stage.page('/')
  await page.locator('[role=log] a[target]').first().waitFor()
  for (const link of await page.locator('[role=log] a[target]').all()) {
    expect(await link.getAttribute('rel')).toBe('noopener noreferrer nofollow')
  }
  expect(await page.locator('[role=log]').getByText('Open the report').count()).toBeGreaterThan(2)
  const addresses = await page.locator('[role=log] a').evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).href))
  expect(addresses.filter((address) => address.includes('execute'))).toEqual([])
})
