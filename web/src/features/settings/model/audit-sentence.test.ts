import { describe, expect, it } from 'vitest'
import type { AuditEntry } from '@/lib/api/types'
import { readAuditFilter } from './audit-filter'
import { circumstancesOf, sentenceOf } from './audit-sentence'

const id = '01a1ea98-51e8-7596-8c5e-c8bd7003e5b2'
const room = '01a1ea98-59d2-72e3-8ed7-2e3664f1156e'
const names = new Map([
  [id, 'ci'],
  [room, 'Parser'],
])

function entry(changes: Partial<AuditEntry>): AuditEntry {
  return { id: 1, created_at: '2026-11-17T12:00:00Z', workspace: 'local', action: 'create',
    object: 'token', object_id: 'x', user_name: 'Ada', role: 'owner', credential: 'token', count: 1, ...changes }
}

describe('an entry of the security log is a sentence', () => {
  it.each([
    [{ action: 'revoke', object: 'token', object_id: id }, 'Ada revoked token ‘ci’'],
    [{ action: 'sign_in', object: 'browser_session', object_id: room, user_name: 'local' }, 'The operator signed in'],
    [{ action: 'refuse', object: 'request', object_id: 'GET /api/agents', user_name: null, credential: 'none', count: 12, detail: { status: 401 } }, 'Someone who was not signed in was refused GET /api/agents (401), 12 times within a minute'],
    [{ action: 'approve', object: 'approval', object_id: 'a', room_id: room, detail: { decision: 'allow', remember: null } }, 'Ada allowed a tool call in room ‘Parser’'],
    [{ action: 'delete', object: 'agent', object_id: '01a1ea98-0000-7596-8c5e-c8bd7003e5b2' }, 'Ada deleted an agent'],
    [{ action: 'update', object: 'mcp_server', object_id: 'time' }, 'Ada changed MCP server ‘time’'],
    [{ action: 'forget', object: 'tool', object_id: 'Bash', room_id: room }, 'Ada withdrew the permission for tool ‘Bash’ in room ‘Parser’'],
    [{ action: 'start', object: 'program', object_id: 'claude', user_name: null, credential: 'system', count: 3 }, 'The server started the program ‘claude’, 3 times within a minute'],
    [{ action: 'erase', object: 'room', object_id: room, user_name: null, credential: 'system' }, 'The server erased room ‘Parser’, which had been deleted'],
    [{ action: 'swim_away', object: 'new_kind', object_id: id.replace('01a1', '99a1') }, 'Ada swim away a new kind'],
  ])('%o', (changes, expected) => {
    expect(sentenceOf(entry(changes as Partial<AuditEntry>), names)).toBe(expected)
  })

  it('with how it was done, and from where', () => {
    expect(circumstancesOf(entry({ credential_id: id, address: '10.0.0.7' }), names)).toBe('with token ‘ci’, from 10.0.0.7, as owner')
    expect(circumstancesOf(entry({ credential: 'none', role: 'none', address: '10.0.0.7' }), names)).toBe('from 10.0.0.7')
  })
})

it('an address that makes no sense filters nothing', () => {
  expect(readAuditFilter({ action: 'sign_in', object: 'x y', user: 'me' })).toEqual({ action: 'sign_in' })
  expect(readAuditFilter({ user: id })).toEqual({ user: id })
})
