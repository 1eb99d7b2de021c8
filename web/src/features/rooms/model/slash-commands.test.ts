import { afterEach, expect, it, vi } from 'vitest'
import { commandStore } from '@/lib/commands'
import { commandsAt, runSlashCommand } from './slash-commands'
import { suggestionsAt } from './suggestions'

afterEach(() => commandStore.set([]))

const names = (text: string, skills: { name: string }[] = []): string[] => commandsAt(text, text.length, skills).map(({ name }) => name)

it('a slash offers commands also where there are no skills', () => {
  expect(names('/')).toContain('stop')
  expect(names('/s')).toEqual(['stop', 'settings'])
  expect(suggestionsAt('/st', 3, [], [])?.list.map(({ name }) => name)).toEqual(['/stop'])
})

it('nothing is offered in the middle of a message, for a path, or where a skill has the name', () => {
  expect(names('look at /st')).toEqual([])
  expect(names('/usr/bin')).toEqual([])
  expect(commandsAt('/st and more', 3, [])).toEqual([])
  expect(names('/st', [{ name: 'stop' }])).toEqual([])
})

it('runs the command that the palette has', () => {
  const run = vi.fn()
  commandStore.set([{ id: 'stop', title: 'Stop', group: 'room', run }])
  const [stop] = commandsAt('/stop', 5, [])
  if (stop) runSlashCommand(stop)
  expect(run).toHaveBeenCalledTimes(1)
})
