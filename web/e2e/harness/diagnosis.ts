import type { BrowserContext, Page } from 'playwright-core'
import { TestRunner } from 'vitest'
import type { Server } from './server'

const patience = 5000
const longest = 1500

/** Whether the test that is being cleaned up after went wrong. */
export function hasFailed(): boolean {
  return TestRunner.getCurrentTest()?.result?.state === 'fail'
}

/** What browsers and server were at when a test failed: where tests run unwatched, the log is all there is to learn from. */
export async function diagnose(contexts: readonly BrowserContext[], server: Server): Promise<string> {
  const pages = contexts.flatMap((context) => context.pages())
  const found = await Promise.all(pages.map(async (page) => [...(await seenOn(page)), ...(await knownOf(page.url(), server))]))
  return [`How things stood when "${TestRunner.getCurrentTest()?.name}" failed:`, ...found.flat(), `server's log: ${server.log.trim() || 'empty'}`].join('\n  ')
}

async function seenOn(page: Page): Promise<string[]> {
  const seen = page.evaluate(() => {
    const dialog = document.querySelector<HTMLElement>('dialog[open]')
    const main = document.querySelector<HTMLElement>('main') ?? document.body
    const { activeElement } = document
    const label = activeElement?.getAttribute('aria-label') ?? activeElement?.textContent?.slice(0, 40) ?? ''
    const fields = [...document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('input:not([type=checkbox]), textarea')]
    return {
      main: main.innerText,
      dialog: dialog?.innerText ?? '',
      focus: activeElement === document.body ? 'nowhere' : `${activeElement?.tagName.toLowerCase()} "${label}"`,
      fields: fields.map(({ value }) => value).filter(Boolean).join(' | '),
    }
  })
  const { main, dialog, focus, fields } = await within(seen).catch((error: unknown) => ({ main: `cannot be read: ${String(error)}`, dialog: '', focus: '', fields: '' }))
  return [
    `page ${page.url()}`,
    ...(dialog ? [`dialog in front: ${onOneLine(dialog)}`] : []),
    `it shows: ${onOneLine(main)}`,
    `focus: ${focus}`,
    `typed in: ${fields || 'nothing'}`,
  ]
}

/** What the server knows of the room that a page is about. */
async function knownOf(url: string, server: Server): Promise<string[]> {
  const room = /\/rooms\/([0-9a-f-]+)/.exec(url)?.[1]
  if (!room) return []
  const ask = (path: string): Promise<string> =>
    within(server.api(path)).then(
      (answer) => onOneLine(JSON.stringify(answer)),
      (error: unknown) => String(error),
    )
  const [messages, runs] = await Promise.all([ask(`/rooms/${room}/messages?limit=3`), ask(`/runs?room_id=${room}&limit=3`)])
  return [`server's messages: ${messages}`, `server's runs: ${runs}`]
}

function within<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${patience} ms`)), patience)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

function onOneLine(text: string): string {
  const line = text.replace(/\s*\n\s*/g, ' · ')
  return line.length > longest ? `… ${line.slice(-longest)}` : line
}
