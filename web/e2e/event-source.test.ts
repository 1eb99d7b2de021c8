import { expect, it } from 'vitest'
import { CuttingProxy } from './harness/cutting-proxy'
import { numbers } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

/** The pages of this test are behind a proxy of its own. */
const stage = stageForTests(/a request left for http:\/\/127\.0\.0\.1/)

const cuts = 10
/** A minute, in which a browser that retries would ask sixty times. */
const leftOpen = 60_000

interface Seen {
  text: string
  opened: number
  completed: number
  source: EventSource
}

declare global {
  interface Window {
    seen: Seen
  }
}

it('an EventSource that is cut ten times and left open after the end has one run', async () => {
  const proxy = await CuttingProxy.start(stage.server.port)
  const { agents } = await stage.server.api<{ agents: { id: string }[] }>('/agents')
  const { ticket } = await stage.server.api<{ ticket: string }>('/tickets', {})
  const task = `/api/execute/agent/${agents[0]?.id}?message=${encodeURIComponent('!count 400 50')}&ticket=${ticket}`
  const page = await (await stage.browser({}, false)).newPage()
  await page.goto(`${proxy.url}/healthz`)
  await page.evaluate((url) => {
    const source = new EventSource(url)
    const seen: Seen = { text: '', opened: 0, completed: 0, source }
    window.seen = seen
    source.addEventListener('open', () => (seen.opened += 1))
    source.addEventListener('message', (event: MessageEvent<string>) => {
      if (event.data !== 'done') seen.text += (JSON.parse(event.data) as { delta: string }).delta
    })
    source.addEventListener('completion', () => (seen.completed += 1))
  }, task)
  for (let cut = 0; cut < cuts; cut += 1) {
    await page.waitForFunction((opened) => window.seen.opened > opened, cut)
    const before = await page.evaluate(() => window.seen.text.length)
    await page.waitForFunction((length) => window.seen.text.length > length, before)
    proxy.cut()
  }
  await page.waitForFunction(() => window.seen.source.readyState === EventSource.CLOSED)
  const { connections } = proxy
  await page.waitForTimeout(leftOpen)
  const { text, completed } = await page.evaluate(() => ({ text: window.seen.text, completed: window.seen.completed }))
  expect(text).toBe(numbers(400))
  expect(completed).toBe(1)
  expect(proxy.connections).toBe(connections)
  const { runs } = await stage.server.api<{ runs: unknown[] }>('/runs')
  expect(runs).toHaveLength(1)
  await proxy.close()
})
