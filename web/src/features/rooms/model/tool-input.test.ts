import { describe, expect, it } from 'vitest'
import { briefOf, resultText, viewOf } from './tool-input'

describe("a tool's input", () => {
  it('is a diff for edits of files', () => {
    expect(viewOf({ file_path: 'a.rs', old_string: 'x', new_string: 'y' })).toEqual({
      kind: 'edits',
      path: 'a.rs',
      edits: [{ before: 'x', after: 'y' }],
    })
    expect(viewOf({ file_path: 'a', edits: [{ old_string: 'x', new_string: 'y' }] })).toMatchObject({ kind: 'edits' })
    expect(viewOf({ file_path: 'a', content: 'new' })).toMatchObject({ edits: [{ before: '', after: 'new' }] })
  })

  it('is shown whole wherever a diff would hide a part of it', () => {
    expect(viewOf({ file_path: 'a', old_string: 'x', new_string: 'y', replace_all: true })).toEqual({ kind: 'json' })
    expect(viewOf({ file_path: 'a', old_string: 'x', new_string: 'y', also: 'rm -rf' })).toEqual({ kind: 'json' })
    expect(viewOf({ file_path: 'a', edits: [{ old_string: 'x', new_string: 'y', sneaky: 1 }] })).toEqual({ kind: 'json' })
  })

  it('is a command with whatever else was said', () => {
    expect(viewOf({ command: 'ls', timeout: 5 })).toEqual({ kind: 'command', command: 'ls', rest: { timeout: 5 } })
    expect(viewOf({ cmd: ['git', 'log; rm'] })).toEqual({ kind: 'json' })
    expect(viewOf({ command: 'ls', cmd: 'rm' })).toEqual({ kind: 'json' })
    expect(viewOf([1])).toEqual({ kind: 'json' })
  })

  it('has a brief form, and a result in words', () => {
    expect(briefOf({ n: 1, path: 'a\n b' })).toBe('a b')
    expect(briefOf({})).toBe('')
    expect(briefOf({ command: 'a\u00A0b' })).toBe('a\u00A0b')
    expect(resultText([{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }])).toBe('a\nb')
    expect(resultText({ a: 1 })).toBe('{\n  "a": 1\n}')
  })
})
