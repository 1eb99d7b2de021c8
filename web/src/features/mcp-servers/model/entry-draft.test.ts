import { describe, expect, it } from 'vitest'
import { draftOf, entryOf, splitCommand, withoutNulls } from './entry-draft'

describe('an entry', () => {
  it('keeps secrets that were not touched, and sends those that were', () => {
    const draft = draftOf({ type: 'stdio', command: 'npx', args: ['-y', 'a b'], env: { OLD: '***', NEW: '***' } })
    expect(draft.env).toEqual([
      { key: 'OLD', value: '', isStored: true },
      { key: 'NEW', value: '', isStored: true },
    ])
    const changed = { ...draft, env: [draft.env[0]!, { ...draft.env[1]!, value: 'fresh' }, { key: 'EMPTY', value: '', isStored: false }, { key: ' ', value: 'x', isStored: false }] }
    expect(entryOf(changed)).toMatchObject({ args: ['-y', 'a b'], env: { OLD: '***', NEW: 'fresh', EMPTY: '' } })
  })

  it('clears what belongs to another kind', () => {
    const draft = { ...draftOf({ type: 'stdio', command: 'npx', env: { A: '***' } }), type: 'http' as const, url: ' https://host/mcp ' }
    expect(entryOf(draft)).toMatchObject({ type: 'http', url: 'https://host/mcp', command: null, args: null, env: null, cwd: null, headers: null })
    expect(withoutNulls(entryOf(draft))).toEqual({ type: 'http', url: 'https://host/mcp' })
  })

  it('takes a command line apart as a terminal would', () => {
    expect(splitCommand(`npx -y "my server" '--a b' c`)).toEqual({ command: 'npx', args: ['-y', 'my server', '--a b', 'c'] })
    expect(splitCommand('npx')).toBeNull()
    expect(splitCommand(' ')).toBeNull()
  })
})
