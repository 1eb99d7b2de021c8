import type { Locator, Page } from 'playwright-core'
import type { Stage } from './stage'

/** A program that every machine has on which these tests run. */
export const smallServer = { command: process.execPath, args: [new URL('small-mcp.mjs', import.meta.url).pathname] }

/** What no page may ever show. */
export const secret = 'hunter2-of-the-small-server'

/** The pages of MCP servers as a person uses them. */
export class McpView {
  constructor(readonly page: Page) {}

  get form(): Locator {
    return this.page.getByRole('form', { name: 'MCP server' })
  }

  get dialog(): Locator {
    return this.page.getByRole('dialog')
  }

  field(name: string): Locator {
    return this.form.getByLabel(name, { exact: true })
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('main').getByRole('button', { name, exact: typeof name === 'string' })
  }

  heading(name: string): Locator {
    return this.page.getByRole('heading', { name, level: 1, exact: true })
  }

  row(name: string): Locator {
    return this.page.getByRole('listitem').filter({ has: this.page.getByRole('link', { name, exact: true }) })
  }

  /** Opens a tool, and the form to try it with. */
  async tool(name: string): Promise<Locator> {
    await this.page.locator('summary').filter({ has: this.page.getByText(name, { exact: true }) }).click()
    const form = this.page.getByRole('form', { name: `Try ${name}` })
    await form.waitFor()
    return form
  }
}

export async function openServers(stage: Stage, path = '/mcp-servers'): Promise<McpView> {
  const view = new McpView(await stage.page(path))
  await view.page.getByRole('heading', { level: 1 }).waitFor()
  return view
}

export function addServer(stage: Stage, name: string, more: object = {}): Promise<unknown> {
  return stage.server.api('/mcp-servers', { name, ...smallServer, env: { SMALL_TOKEN: secret }, ...more })
}
