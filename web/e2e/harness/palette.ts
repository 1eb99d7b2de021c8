import type { Page } from 'playwright-core'

/** Types until the palette has what is looked for, as one does who looks at it: rooms and agents may still be on their way. */
export async function command(page: Page, typed: string, title: string | RegExp): Promise<void> {
  await page.keyboard.press('Control+k')
  await page.keyboard.type(typed)
  await page.getByRole('listbox', { name: 'Commands' }).getByRole('option', { name: title, selected: true }).waitFor()
  await page.keyboard.press('Enter')
}
