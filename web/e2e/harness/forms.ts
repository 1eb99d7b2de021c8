import { mkdirSync } from 'node:fs'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { barriersOn } from './axe'

export const folder = new URL('../../../target/screens/', import.meta.url).pathname
const phone = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }

/** The ways in which a page is looked at. */
export const forms: Record<string, BrowserContextOptions> = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { colorScheme: 'light', ...phone },
  'phone-dark': { colorScheme: 'dark', ...phone },
  wide: { colorScheme: 'light', viewport: { width: 2560, height: 1300 } },
}

/** Takes a picture of a page, and says what is wrong with it: too wide, or with a barrier unless those are not looked for. */
export async function inspect(page: Page, name: string, form: string, looksForBarriers = true): Promise<string[]> {
  mkdirSync(folder, { recursive: true })
  await page.evaluate(() => document.fonts.ready)
  await page.waitForTimeout(150)
  await page.screenshot({ path: `${folder}${name}-${form}.png` })
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  const faults = looksForBarriers ? await barriersOn(page) : []
  return [...(overflow > 0 ? [`${overflow} px too wide`] : []), ...faults].map((fault) => `${name}: ${fault}`)
}
