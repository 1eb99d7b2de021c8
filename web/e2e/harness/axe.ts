import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Found {
  id: string
  help: string
  nodes: { target: string[]; failureSummary: string }[]
}

/** What stands between this page and people who cannot see, hear or point well (WCAG 2.2 A and AA, best practices). */
export async function barriersOn(page: Page): Promise<string[]> {
  await page.evaluate(source)
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: Found[] }> } }
    return (await axe.run()).violations
  })
  return violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help} at ${node.target.join(' ')} — ${node.failureSummary}`))
}
