import type { Locator, Page } from 'playwright-core'
import type { Stage } from './stage'

/** The pages of agents and the dialog for a task, as a person uses them. */
export class AgentsView {
  constructor(readonly page: Page) {}

  field(name: string): Locator {
    return this.page.getByRole('form', { name: 'Agent' }).getByLabel(name, { exact: true })
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('main').getByRole('button', { name, exact: typeof name === 'string' })
  }

  heading(name: string): Locator {
    return this.page.getByRole('heading', { name, level: 1, exact: true })
  }

  card(name: string): Locator {
    return this.page.getByRole('listitem').filter({ has: this.page.getByRole('heading', { name, exact: true }) })
  }

  section(title: string): Locator {
    return this.page.getByRole('button', { name: new RegExp(`^${title}`) })
  }

  get dialog(): Locator {
    return this.page.getByRole('dialog')
  }

  async choose(agent: string, item: string): Promise<void> {
    await this.page.getByRole('main').getByRole('button', { name: `Actions for ${agent}` }).click()
    await this.page.getByRole('menuitem', { name: item }).click()
  }

  /** Gives a task in the dialog, wherever that was opened from. */
  async run(task: string): Promise<void> {
    await this.dialog.getByLabel('Task').last().fill(task)
    await this.dialog.getByRole('button', { name: 'Run', exact: true }).click()
  }
}

export async function openAgents(stage: Stage, path = '/agents'): Promise<AgentsView> {
  const view = new AgentsView(await stage.page(path))
  await view.page.getByRole('heading', { level: 1 }).waitFor()
  return view
}

export function makeAgent(stage: Stage, name: string, more: object = {}): Promise<{ id: string }> {
  return stage.server.api('/agents', { name, provider: 'scripted', ...more })
}
