import { describe, expect, it } from 'vitest'
import { type RoomView, numbers, openRoom } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

const newRoom = (): Promise<RoomView> => openRoom(stage, 'Control')

describe('stopping', () => {
  it('says that it has stopped when it has', async () => {
    const room = await newRoom()
    await room.say('!hang')
    await room.hears('Hanging')
    await room.button('Stop').click()
    await room.page.getByRole('status').filter({ hasText: 'Stopped' }).waitFor()
    await room.hears('Stopped')
    await expectGone(room, 'Stop')
  })

  it('b14_the_result_of_a_stop_goes_when_the_next_answer_begins', async () => {
    const room = await newRoom()
    await room.say('!hang')
    await room.hears('Hanging')
    await room.button('Stop').click()
    const result = room.page.getByRole('form', { name: 'Message' }).getByText(/^Stopped/)
    await result.waitFor()
    await room.say('!hang')
    // It would be there for eight seconds.
    await result.waitFor({ state: 'detached', timeout: 4000 })
    await room.button('Stop').click()
    await result.waitFor()
  })

  it('works by the keyboard', async () => {
    const room = await newRoom()
    await room.say('!hang')
    await room.hears('Hanging')
    await room.page.keyboard.press('Control+.')
    await room.hears('Stopped')
  })

  it('a newer message interrupts, keeps the partial answer, and is answered', async () => {
    const room = await newRoom()
    await room.say('!count 500 50')
    await room.hears('1 2 3')
    await room.page.getByText('Interrupt', { exact: true }).click()
    await room.say('!count 5')
    await room.answers.first().filter({ hasText: 'Replaced by a newer message' }).waitFor()
    await room.answers.nth(1).filter({ hasText: numbers(5) }).waitFor()
    const partial = await room.answers.first().locator('p').first().innerText()
    expect(numbers(500).startsWith(partial)).toBe(true)
  })

  it('a queued message waits for its turn and can be taken back', async () => {
    const room = await openRoom(stage, 'Control', { policy: { when_busy: 'enqueue' } })
    await room.say('!hang')
    await room.hears('Hanging')
    await room.say('After that')
    await room.page.getByText('Next up').waitFor()
    await room.button('Cancel').click()
    await room.page.locator('article[data-kind=aside]').filter({ hasText: 'Canceled before it started' }).waitFor()
    // What was typed is not lost.
    await room.page.waitForFunction(() => document.querySelector('textarea')?.value === 'After that')
    await room.button('Stop').click()
    await room.hears('Stopped')
  })

  it('a failed answer says why and can be tried again', async () => {
    const room = await newRoom()
    await room.say('!fail over_loaded Try later')
    await room.hears('Error code: over_loaded')
    await room.button('Retry').click()
    await room.answers.nth(1).filter({ hasText: 'Error code: over_loaded' }).waitFor()
    expect(await room.page.locator('article[data-kind=person]').count()).toBe(2)
  })
})

describe('approving', () => {
  it('allows exactly what is shown', async () => {
    const room = await newRoom()
    await room.say('!ask Bash {"cmd":"ls -l"}')
    await room.page.getByText('Allow scripted to run Bash?').waitFor()
    await room.page.getByRole('region', { name: 'Approval for Bash' }).getByText('ls -l', { exact: true }).waitFor()
    await room.button(/^Allow$/).click()
    await room.hears(/Allowed.*allowed/s)
    await expectGone(room, /^Allow$/)
  })

  it('denies', async () => {
    const room = await newRoom()
    await room.say('!ask Bash {"cmd":"rm -rf"}')
    await room.button('Deny').click()
    await room.hears(/Denied.*denied/s)
  })

  it('allows something else', async () => {
    const room = await newRoom()
    await room.say('!ask Bash {"cmd":"ls"}')
    await room.button(/^Edit$/).click()
    const field = room.page.getByRole('textbox', { name: 'Input, as JSON' })
    await field.fill('{ broken')
    expect(await room.button('Allow edited').isDisabled()).toBe(true)
    await field.fill('{"cmd":"pwd"}')
    await room.button('Allow edited').click()
    await room.hears('Allowed with edited input')
    // The card names what ran, not what was asked for.
    await room.page.getByRole('button', { name: /^Bash pwd/ }).click()
    await room.page.getByRole('group', { name: 'Result' }).getByText('pwd').waitFor()
  })

  it('is still there after a reload, and what was decided too', async () => {
    const room = await newRoom()
    await room.say('!ask Bash {"cmd":"ls"}')
    await room.button(/^Allow$/).waitFor()
    await room.page.reload()
    await room.button(/^Allow$/).click()
    await room.hears(/Allowed/)
    await room.page.reload()
    await room.hears(/Allowed/)
  })

  it('shows a diff for an edit', async () => {
    const room = await newRoom()
    await room.say('!ask Edit {"file_path":"src/a.rs","old_string":"let a = 1;","new_string":"let a = 2;"}')
    const diff = room.page.getByRole('group', { name: 'Changes' })
    await diff.waitFor()
    expect(await diff.innerText()).toMatch(/−\s*let a = 1;\s*\+\s*let a = 2;/)
    await room.button('Deny').click()
    await room.hears('Denied')
  })
})

async function expectGone(room: RoomView, name: string | RegExp): Promise<void> {
  await room.button(name).waitFor({ state: 'detached' })
}
