import { describe, expect, it } from 'vitest'
import { matches, sentenceFor, verdictOf } from './tool-policy'

describe('a tool policy', () => {
  // The server's own table: both have to decide alike.
  it.each([
    ['read', 'read', true],
    ['read', 'reader', false],
    ['*', '', true],
    ['mcp__*', 'mcp__git__log', true],
    ['*__log', 'mcp__git__log', true],
    ['mcp__*__log', 'mcp__git__log', true],
    ['mcp__*__log', 'mcp__git__blame', false],
    ['a*a', 'a', false],
    ['a**b', 'ab', true],
  ])('%s on %s', (pattern, text, fits) => {
    expect(matches(pattern, text)).toBe(fits)
  })

  it('denies before it asks before it allows, and asks about what nobody named', () => {
    const tools = { allow: ['*'], ask: ['write*'], deny: ['write_secret'] }
    expect(verdictOf(tools, 'read')).toEqual({ list: 'allow', pattern: '*' })
    expect(verdictOf(tools, 'write_file')).toEqual({ list: 'ask', pattern: 'write*' })
    expect(verdictOf(tools, 'write_secret')).toEqual({ list: 'deny', pattern: 'write_secret' })
    expect(verdictOf({ allow: [], ask: [], deny: [] }, 'x')).toEqual({ list: 'ask', pattern: null })
    expect(sentenceFor('x', { list: 'ask', pattern: null })).toBe('x asks you first, nothing here names it.')
  })
})
