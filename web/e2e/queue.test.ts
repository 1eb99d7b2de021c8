import { expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { RoomView, firstAgent, numbers } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

it.each(['light', 'dark', 'phone'] as const)('waiting messages are moved by buttons and by dragging, and cancelled, in the form %s', async (form) => {
  const agents = [await firstAgent(stage)]
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: `Queue ${form}`, agents, policy: { when_busy: 'enqueue' } })
  const room = new RoomView(await stage.page(`/rooms/${id}`, forms[form]))
  const send = (text: string): Promise<unknown> => stage.server.api(`/rooms/${id}/messages`, { text })
  await send('!hang')
  await room.hears('Hanging')
  for (const text of ['!count 2', '!count 3', '!count 4', '!count 5']) await send(text)
  const queue = room.page.getByRole('region', { name: 'Waiting messages' })
  const order = (): Promise<string[]> => queue.getByRole('listitem').locator('span').first().evaluate((first) => [...(first.closest('ol')?.querySelectorAll('li > span') ?? [])].map((item) => item.textContent ?? ''))
  await expect.poll(order).toEqual(['!count 2', '!count 3', '!count 4', '!count 5'])
  await queue.getByRole('button', { name: 'Move !count 5 earlier' }).click()
  await expect.poll(order).toEqual(['!count 2', '!count 3', '!count 5', '!count 4'])
  // The focus goes with the button, so that it can be pressed again.
  await expect.poll(() => room.page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Move !count 5 earlier')
  await room.page.keyboard.press('Enter')
  await expect.poll(order).toEqual(['!count 2', '!count 5', '!count 3', '!count 4'])
  const item = (text: string) => queue.getByRole('listitem').filter({ hasText: text })
  await item('!count 4').dragTo(item('!count 2'))
  await expect.poll(order).toEqual(['!count 4', '!count 2', '!count 5', '!count 3'])
  expect(await inspect(room.page, 'queue', form)).toEqual([])
  await queue.getByRole('button', { name: 'Cancel !count 2' }).click()
  await expect.poll(order).toEqual(['!count 4', '!count 5', '!count 3'])
  // What was not answered goes back to where it was typed.
  await expect.poll(() => room.field.inputValue()).toBe('!count 2')
  await room.page.reload()
  await expect.poll(order).toEqual(['!count 4', '!count 5', '!count 3'])
  const { runs } = await stage.server.api<{ runs: { id: string }[] }>(`/runs?room_id=${id}&status=running`)
  await stage.server.api(`/runs/${runs[0]?.id}/cancel`, {})
  await room.answers.nth(3).filter({ hasText: numbers(3) }).waitFor()
  const said = await room.answers.allInnerTexts()
  const at = (until: number): number => said.findIndex((text) => text.includes(numbers(until)) && !text.includes(numbers(until + 1)))
  expect([at(4), at(5), at(3)]).toEqual([1, 2, 3])
})
