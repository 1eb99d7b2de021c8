import { describe, expect, it } from 'vitest'
import { type Command, isPressed, search } from './commands'

const command = (title: string, detail = ''): Command => ({ id: title, title, detail, group: 'rooms', run: () => {} })
const press = (key: string, held: Partial<Record<'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey', boolean>> = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  ...held,
})

describe('commands', () => {
  it('are found by any of their words, best first', () => {
    const all = [command('Leave the lobby'), command('Lobby', 'scripted'), command('Kitchen')]
    expect(search(all, 'lob').map((found) => found.title)).toEqual(['Lobby', 'Leave the lobby'])
    expect(search(all, 'lob scr').map((found) => found.title)).toEqual(['Lobby'])
    expect(search(all, 'lby').map((found) => found.title)).toEqual(['Lobby', 'Leave the lobby'])
    expect(search(all, 'lobkit')).toEqual([])
    expect(search(all, '')).toHaveLength(3)
  })

  it('are started by exactly their keys', () => {
    expect(isPressed(press('k', { ctrlKey: true }), 'mod+k')).toBe(true)
    expect(isPressed(press('k', { metaKey: true }), 'mod+k')).toBe(true)
    expect(isPressed(press('k'), 'mod+k')).toBe(false)
    expect(isPressed(press('k', { ctrlKey: true, shiftKey: true }), 'mod+k')).toBe(false)
    expect(isPressed(press('?', { shiftKey: true }), '?')).toBe(true)
    expect(isPressed(press('ArrowDown', { altKey: true }), 'alt+ArrowDown')).toBe(true)
    expect(isPressed(press('ArrowDown'), 'alt+ArrowDown')).toBe(false)
  })
})
