import { afterAll, beforeAll, expect, it } from 'vitest'
import { ModelDouble } from './harness/model-double'
import { RoomView } from './harness/room'
import { Stage } from './harness/stage'

const answer = 'Hello from Claude Code, by way of a double.'
let models: ModelDouble
let stage: Stage

beforeAll(async () => {
  const program = process.env.GREENROOM_TEST_CLAUDE
  if (!program) throw new Error('Set GREENROOM_TEST_CLAUDE to the program of Claude Code; cargo xtask test browser does.')
  models = await ModelDouble.start(answer)
  stage = await Stage.open({ GREENROOM_CLAUDE_CODE__COMMAND: program, GREENROOM_CLAUDE_CODE__SHARE_LOGIN: 'false', ANTHROPIC_BASE_URL: models.url, ANTHROPIC_API_KEY: models.key })
})

afterAll(async () => {
  await stage.close()
  await models.stop()
})

it('a newcomer gets from the printed link to the first answer of a real agent in at most six clicks', async () => {
  // As somebody who was never here: what the server printed at its start is all they have.
  const link = /sign in\s+\S+?(\/sign-in#code=\S+)/.exec(stage.server.log)?.[1]
  expect(link).toBeTruthy()
  const page = await stage.stranger(link)
  await page.evaluate(() => document.addEventListener('click', (event) => event.isTrusted && (document.documentElement.dataset.clicks = String(Number(document.documentElement.dataset.clicks ?? 0) + 1)), true))
  await page.getByRole('heading', { name: 'Greenroom runs AI agents in rooms' }).waitFor()
  await page.getByRole('button', { name: 'Chat with Claude Code', exact: true }).click()
  await page.getByRole('heading', { name: 'Message Claude Code' }).waitFor()
  await page.keyboard.type('Who are you?')
  await page.keyboard.press('Enter')
  const room = new RoomView(page)
  await room.hears(answer, 120_000)
  const clicks = Number(await page.evaluate(() => document.documentElement.dataset.clicks))
  expect(clicks).toBeGreaterThan(0)
  expect(clicks).toBeLessThanOrEqual(6)
  // It was the real program, which never had the real key: the server added it.
  expect(models.calls.filter(({ path }) => path === '/v1/messages').map((call) => call.key)).toContain(models.key)
  expect(stage.complaints).toEqual([])
})
