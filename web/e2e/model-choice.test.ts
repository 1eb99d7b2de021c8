import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { forms, inspect } from './harness/forms'
import { ModelDouble } from './harness/model-double'
import { RoomView, openRoom } from './harness/room'
import { Stage } from './harness/stage'

let models: ModelDouble
let stage: Stage
beforeAll(async () => {
  models = await ModelDouble.start('Hello from the double.')
  stage = await Stage.open({ ANTHROPIC_BASE_URL: models.url, ANTHROPIC_API_KEY: models.key })
})
afterEach(() => stage.closeBrowsers())
afterAll(async () => {
  await stage.close()
  await models.stop()
  expect(stage.complaints).toEqual([])
})

it.each(['light', 'dark', 'phone'] as const)('the model and the effort are chosen in the composer, for this room, in the form %s', async (form) => {
  const { id: agent } = await stage.server.api<{ id: string }>('/agents', { name: `Ada ${form}`, provider: 'anthropic', model: 'claude-own' })
  const { id } = await stage.server.api<{ id: string }>('/rooms', { name: `Models ${form}`, agents: [agent] })
  const room = new RoomView(await stage.page(`/rooms/${id}`, forms[form]))
  const choice = room.button(/^Model and reasoning effort/)
  await choice.filter({ hasText: 'claude-own' }).click()
  const dialog = room.page.getByRole('dialog', { name: 'Model and reasoning effort' })
  await expect.poll(() => dialog.locator('datalist option').allTextContents()).toEqual(['Double 1'])
  expect(await dialog.getByLabel('Model', { exact: true }).getAttribute('placeholder')).toBe('As the agent: claude-own')
  await dialog.getByLabel('Model', { exact: true }).fill('claude-double-1')
  await dialog.getByLabel('Reasoning effort').selectOption({ label: 'High effort' })
  expect(await inspect(room.page, 'model-choice', form)).toEqual([])
  await dialog.getByRole('button', { name: 'Save', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  await choice.filter({ hasText: 'claude-double-1 · High effort' }).waitFor()
  await room.field.fill('Hi')
  await room.button(/^Send$/).click()
  await room.hears('Hello from the double.')
  expect(models.bodies.at(-1)).toMatchObject({ model: 'claude-double-1', output_config: { effort: 'high' } })
  await room.page.reload()
  await choice.filter({ hasText: 'claude-double-1 · High effort' }).click()
  await dialog.getByLabel('Model', { exact: true }).fill('')
  await dialog.getByLabel('Reasoning effort').selectOption({ label: 'As the agent' })
  await dialog.getByRole('button', { name: 'Save', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  await choice.filter({ hasText: 'claude-own' }).waitFor()
  await room.field.fill('Again')
  await room.button(/^Send$/).click()
  await expect.poll(() => models.bodies.at(-1)).toMatchObject({ model: 'claude-own' })
  expect(models.bodies.at(-1)).not.toHaveProperty('output_config')
})

it('the demo agent has no model to choose', async () => {
  const room = await openRoom(stage, 'Demo')
  await room.button('Attach files').waitFor()
  expect(await room.button(/^Model and reasoning effort/).count()).toBe(0)
})
