import { expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { RoomView, numbers, openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

it('a branch has the messages up to its own, goes on by itself, and leads back', async () => {
  const room = await openRoom(stage, 'Parser')
  await room.say('!script [{"tool_use":{"id":"t","name":"Read","input":{"path":"a.txt"}}},{"tool_result":{"id":"t","content":"one"}},{"text":"It says one."}]')
  await room.hears('It says one.')
  await room.say('!count 3')
  await room.hears(numbers(3))
  await room.say('!count 7')
  await room.hears(numbers(7))
  const answer = room.answers.nth(1)
  await answer.hover()
  await answer.getByRole('button', { name: 'Branch from here' }).click()
  await room.page.getByRole('heading', { name: 'Parser (branch)' }).waitFor()
  await room.hears(numbers(3))
  expect(await room.answers.count()).toBe(2)
  await room.answers.first().getByRole('button', { name: /^Read a\.txt/ }).waitFor()
  await room.say('!count 5')
  await room.hears(numbers(5))
  await room.page.reload()
  await room.hears(numbers(5))
  expect(await room.answers.count()).toBe(3)
  await room.page.getByRole('link', { name: 'Branched from Parser' }).click()
  await room.page.getByRole('heading', { name: 'Parser', exact: true }).waitFor()
  // The link marks the message that it was branched off at.
  await room.page.locator('article[data-marked]').filter({ hasText: numbers(3) }).waitFor()
  await room.answers.nth(2).filter({ hasText: numbers(7) }).waitFor()
  expect(await room.log.getByText(numbers(5), { exact: true }).count()).toBe(0)
})

it.each(['light', 'dark', 'phone'] as const)('a branch of a question leaves its answer out, in the form %s', async (form) => {
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: `Question ${form}`, agents: [] })
  await stage.server.api(`/rooms/${id}/messages`, { text: 'What now?' })
  await stage.server.api(`/rooms/${id}/messages`, { text: 'And then?' })
  const page = await stage.page(`/rooms/${id}`, forms[form])
  const first = page.locator('article[data-kind=person]').first()
  await first.hover()
  await first.getByRole('button', { name: 'Branch from here' }).click()
  await page.getByRole('heading', { name: `Question ${form} (branch)` }).waitFor()
  await page.getByText('What now?').last().waitFor()
  expect(await new RoomView(page).log.getByText('And then?').count()).toBe(0)
  expect(await inspect(page, 'branch', form)).toEqual([])
})
