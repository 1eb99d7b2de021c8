import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { RoomView, firstAgent } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()
let agent: string
beforeAll(async () => {
  agent = await firstAgent(stage)
})

async function open(name: string): Promise<{ id: string; view: RoomView }> {
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name, agents: [agent] })
  const view = new RoomView(await stage.page(`/rooms/${id}`))
  await view.field.waitFor()
  return { id, view }
}

/** What the page's own thread has worked so far, in milliseconds: what else this machine is busy with does not count. */
async function processorTime(page: Page): Promise<() => Promise<number>> {
  const browser = await page.context().newCDPSession(page)
  await browser.send('Performance.enable', { timeDomain: 'threadTicks' })
  return async () => {
    const { metrics } = await browser.send('Performance.getMetrics')
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1000
  }
}

/** Markdown of some length, a word at a time. */
function script(words: number, pause: number): string {
  const text = Array.from({ length: words }, (_, index) => {
    if (index % 90 === 40) return '\n\n```ts\nconst answer = 42\n```\n\n'
    if (index % 25 === 0) return '\n\n- an item with **weight** and `code`'
    return ` word${index}`
  })
  return `!script ${JSON.stringify(text.map((piece) => ({ text: piece, after_ms: pause })))}`
}

it('typing does not stutter while a hundred tokens a second stream in', async () => {
  const { view } = await open('Fast')
  const spent = await processorTime(view.page)
  await view.say(script(900, 10))
  await view.hears('word30')
  await view.page.evaluate(() => {
    const keys: number[] = []
    Object.assign(globalThis, { keys })
    const note = (list: PerformanceObserverEntryList): void => {
      for (const entry of list.getEntries()) if (entry.name === 'keydown') keys.push(entry.duration)
    }
    new PerformanceObserver(note).observe({ type: 'event', durationThreshold: 16 } as PerformanceObserverInit)
  })
  let typed = ''
  const began = performance.now()
  const before = await spent()
  while (performance.now() - began < 5000) {
    const letter = 'typing goes on '[typed.length % 15] ?? ''
    await view.page.keyboard.type(letter)
    await view.page.waitForTimeout(40)
    typed += letter
  }
  const busy = (await spent()) - before
  const took = performance.now() - began
  expect(await view.field.inputValue()).toBe(typed)
  expect(await view.answers.filter({ hasText: 'word899' }).count(), 'it was still streaming').toBe(0)
  // From the press of a key to the picture that shows it, of those that took a while.
  const keys = await view.page.evaluate(() => (globalThis as unknown as { keys: number[] }).keys)
  const share = busy / took
  console.log(`${typed.length} keys in ${Math.round(took)} ms, of which the page worked ${Math.round(share * 100)} %; slow keys ${keys.join(' ') || 'none'} ms`)
  expect(share, 'share of the time that the page needs for itself').toBeLessThan(0.5)
  await view.hears('word899', 30_000)
})

it('a flood of a megabyte does not take the page down', async () => {
  const { view } = await open('Flood')
  await view.say('!flood 1048576')
  await view.lastAnswer.getByText(/tokens/).waitFor({ timeout: 120_000 })
  const spent = await processorTime(view.page)
  const before = await spent()
  await view.field.fill('still here')
  expect((await spent()) - before).toBeLessThan(500)
})

it('four megabytes in one answer: keys are answered while it comes and after, and it can be read in pieces', async () => {
  const { view } = await open('Large')
  await view.page.evaluate(() => {
    const keys: number[] = []
    Object.assign(globalThis, { keys })
    const note = (list: PerformanceObserverEntryList): void => {
      for (const entry of list.getEntries()) if (entry.name === 'keydown') keys.push(entry.duration)
    }
    new PerformanceObserver(note).observe({ type: 'event', durationThreshold: 16 } as PerformanceObserverInit)
  })
  const spent = await processorTime(view.page)
  const before = await spent()
  await view.say('!flood 4194304')
  const began = performance.now()
  let typed = ''
  while ((await view.lastAnswer.getByText(/tokens/).count()) === 0 && performance.now() - began < 60_000) {
    await view.page.keyboard.type('a')
    typed += 'a'
    await view.page.waitForTimeout(50)
  }
  await view.lastAnswer.getByText(/tokens/).waitFor()
  await view.page.keyboard.type('bcdef')
  expect(await view.field.inputValue()).toBe(`${typed}bcdef`)
  const keys = (await view.page.evaluate(() => (globalThis as unknown as { keys: number[] }).keys)).toSorted((a, b) => a - b)
  const busy = (await spent()) - before
  console.log(`4 MiB in ${Math.round(performance.now() - began)} ms, of which the page worked ${Math.round(busy)} ms; ${typed.length + 5} keys, slow ones ${keys.join(' ') || 'none'} ms`)
  // The time of the page's own thread: keys also wait for whatever else a busy machine does.
  expect(busy, 'milliseconds that the page needs for all of it').toBeLessThan(1500)
  expect(keys[Math.floor(keys.length / 2)] ?? 0, 'the middle of the slow keys').toBeLessThan(100)
  await view.lastAnswer.getByText(/MB not shown/).waitFor()
  const shown = await view.lastAnswer.evaluate((answer) => answer.textContent?.length ?? 0)
  await view.button('Show more').click()
  await view.page.waitForFunction((length) => (document.querySelector('article[data-kind=answer]:last-of-type')?.textContent?.length ?? 0) > length + 150_000, shown)
})

it('thousands of messages: only those near the screen are in the page, older ones come as one scrolls up', async () => {
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: 'Long', agents: [] })
  const post = (number: number): Promise<unknown> => stage.server.api(`/rooms/${id}/messages`, { text: `Message number ${number}` })
  for (let number = 1; number <= 3000; number += 50) await Promise.all(Array.from({ length: 50 }, (_, index) => post(number + index)))
  const page = await stage.page(`/rooms/${id}`)
  await page.locator('article').last().waitFor()
  const began = performance.now()
  let rounds = 0
  while ((await page.getByText('Start of conversation').count()) === 0 && rounds < 200) {
    await page.getByRole('log').evaluate((log) => log.scrollTo(0, 0))
    await page.waitForTimeout(30)
    rounds += 1
  }
  console.log(`3000 messages read back in ${Math.round(performance.now() - began)} ms, ${rounds} scrolls`)
  expect(await page.locator('article').count()).toBeLessThan(80)
  // What is loaded above keeps the place of what is shown, so the top may take another scroll.
  const topSeq = async (): Promise<string | null> => {
    await page.getByRole('log').evaluate((log) => log.scrollTo(0, 0))
    await page.waitForTimeout(30)
    return page.locator('article').first().getAttribute('data-seq')
  }
  await expect.poll(topSeq, { timeout: 5000 }).toBe('1')
  await page.getByRole('button', { name: 'Jump to latest' }).click()
  await page.waitForTimeout(300)
  const last = await page.locator('article').last().getAttribute('data-seq')
  expect(last).toBe('3000')
})

it('eight tools with output move nothing that is being read', async () => {
  const { view } = await open('Tools')
  await view.page.evaluate(() => {
    const shifts = { sum: 0 }
    Object.assign(globalThis, { shifts })
    const note = (list: PerformanceObserverEntryList): void => {
      for (const entry of list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean })[]) if (!entry.hadRecentInput) shifts.sum += entry.value
    }
    new PerformanceObserver(note).observe({ type: 'layout-shift', buffered: true })
  })
  const tools = Array.from({ length: 8 }, (_, index) => [
    { after_ms: 60, tool_use: { id: `t${index}`, name: 'Bash', input: { command: `step ${index}` } } },
    ...[1, 2, 3].map((line) => ({ after_ms: 40, tool_output: { id: `t${index}`, delta: `line ${line} of its output\n` } })),
    { after_ms: 60, tool_result: { id: `t${index}`, content: 'done' } },
  ]).flat()
  await view.say(`!script ${JSON.stringify([...tools, { text: 'All done.' }])}`)
  await view.hears('All done.')
  await view.lastAnswer.getByText(/tokens/).waitFor()
  const shift = await view.page.evaluate(() => (globalThis as unknown as { shifts: { sum: number } }).shifts.sum)
  console.log(`layout shift with eight tools: ${shift.toFixed(4)}`)
  expect(shift).toBeLessThan(0.05)
})

it('scrolling up is left alone, and a button leads back to what is new', async () => {
  const { view } = await open('Scroll')
  await view.say('!count 3000')
  await view.lastAnswer.getByText(/tokens/).waitFor()
  await view.say('!count 100 40')
  await view.hears('1 2 3')
  await view.log.hover()
  await view.page.mouse.wheel(0, -600)
  await view.page.getByRole('button', { name: 'New text below' }).waitFor()
  const at = await view.log.evaluate((log) => log.scrollTop)
  await view.page.waitForTimeout(700)
  expect(await view.log.evaluate((log) => log.scrollTop)).toBe(at)
  await view.page.getByRole('button', { name: 'New text below' }).click()
  await view.page.waitForTimeout(300)
  const distance = () => view.log.evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight)
  expect(await distance()).toBeLessThan(40)
  await view.hears('98 99 100')
  await view.lastAnswer.getByText(/tokens/).waitFor()
  expect(await distance()).toBeLessThan(40)
})

it('one jump to the top stays there', async () => {
  const { view } = await open('Jump')
  for (const text of ['First of all', '!count 2000', 'Short', '!count 900', 'Last of all']) {
    await view.say(text)
    await view.lastAnswer.getByText(/tokens/).waitFor()
  }
  // As on a slow machine, where what one key began is not over when the next is pressed.
  const browser = await view.page.context().newCDPSession(view.page)
  await browser.send('Emulation.setCPUThrottlingRate', { rate: 4 })
  for (let i = 0; i < 8; i += 1) {
    await view.log.focus()
    await view.page.keyboard.press('Home')
    await view.page.locator('article').filter({ hasText: 'First of all' }).first().waitFor()
    await view.page.waitForTimeout(200)
    expect(await view.log.evaluate((log) => log.scrollTop)).toBe(0)
    await view.page.keyboard.press('End')
    await view.page.locator('article').filter({ hasText: 'Last of all' }).first().waitFor()
  }
})
