import type { Locator, Page } from 'playwright-core'
import type { Stage } from './stage'

/** The room page as a person uses it. */
export class RoomView {
  constructor(readonly page: Page) {}

  get field(): Locator {
    return this.page.getByRole('textbox', { name: 'Message' })
  }

  get log(): Locator {
    return this.page.getByRole('log')
  }

  get answers(): Locator {
    return this.page.locator('article[data-kind=answer]')
  }

  get lastAnswer(): Locator {
    return this.answers.last()
  }

  async say(text: string): Promise<void> {
    // A click waits until nothing is in front of the field; what is typed behind a dialog goes nowhere.
    await this.field.click()
    await this.field.fill(text)
    await this.field.press('Enter')
  }

  /** Waits until the last answer has this text somewhere. */
  async hears(text: string | RegExp, timeout?: number): Promise<void> {
    await this.lastAnswer.filter({ hasText: text }).waitFor({ timeout })
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name })
  }
}

/** Shows what only developers want to see: journal numbers and events. */
export async function asDeveloper(page: Page): Promise<void> {
  await page.evaluate(() => localStorage.setItem('greenroom.preferences', JSON.stringify({ developer: true })))
  await page.reload()
}

/** The agent that every server has from the start. */
export async function firstAgent(stage: Stage): Promise<string> {
  const { agents } = await stage.server.api<{ agents: { id: string }[] }>('/agents')
  return agents[0]?.id ?? ''
}

/** A room of its own, so that nothing said earlier can be taken for what is waited for. */
export async function openRoom(stage: Stage, name: string, settings: object = {}): Promise<RoomView> {
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name, agents: [await firstAgent(stage)], ...settings })
  const view = new RoomView(await stage.page(`/rooms/${id}`))
  await view.field.waitFor()
  return view
}

export function numbers(until: number): string {
  return Array.from({ length: until }, (_, index) => index + 1).join(' ')
}
