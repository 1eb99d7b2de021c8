import type { AuditEntry } from '@/lib/api/types'

/** Names of objects by their ids, as far as this page knows them. */
export type AuditNames = ReadonlyMap<string, string>

/** What was done, in one sentence without a full stop: `Ada revoked token ‘ci’`. */
export function sentenceOf(entry: AuditEntry, names: AuditNames): string {
  const times = entry.count > 1 ? `, ${entry.count} times within a minute` : ''
  return `${authorOf(entry)} ${deedOf(entry, names)}${placeOf(entry, names)}${times}`
}

export function authorOf({ user_name, credential }: Pick<AuditEntry, 'user_name' | 'credential'>): string {
  if (user_name) return user_name === 'local' ? 'The operator' : user_name
  return { agent: 'An agent', system: 'The server', none: 'Someone who was not signed in' }[credential] ?? 'Someone'
}

function deedOf(entry: AuditEntry, names: AuditNames): string {
  const { action, object } = entry
  const detail = detailOf(entry)
  const what = objectOf(entry, names)
  switch (action) {
    case 'sign_in':
      return 'signed in'
    case 'sign_out':
      return 'signed out'
    case 'refuse':
      return `was refused ${entry.object_id}${typeof detail.status === 'number' ? ` (${detail.status})` : ''}`
    case 'start':
      return `started the program ${quoted(entry.object_id)}`
    case 'approve':
      return { allow: 'allowed a tool call', deny: 'denied a tool call' }[String(detail.decision)] ?? 'answered an approval'
    case 'forget':
      return object === 'tool' ? `withdrew the permission for ${what}` : `removed ${what}`
    case 'trust':
      return 'trusted the MCP servers of a folder'
    case 'distrust':
      return 'stopped trusting the MCP servers of a folder'
    case 'propose':
      return object === 'proposal' ? 'proposed a change to a skill' : `proposed a change to ${what}`
    case 'purge':
      return `deleted ${what} and had it erased at once`
    case 'erase':
      return `erased ${what}, which had been deleted`
    default:
      return `${verbs[action] ?? action.replaceAll('_', ' ')} ${what}`
  }
}

const verbs: Record<string, string> = {
  create: 'created',
  update: 'changed',
  delete: 'deleted',
  post: 'posted',
  cancel: 'stopped',
  rate: 'rated',
  accept: 'accepted',
  reject: 'rejected',
  revoke: 'revoked',
}

const objectWords: Record<string, string> = {
  browser_session: 'browser session',
  mcp_file: '.mcp.json file',
  mcp_server: 'MCP server',
  upload: 'file',
}

export function objectWord(object: string): string {
  return objectWords[object] ?? object.replaceAll('_', ' ')
}

/** With its name where one is known; ids tell nothing to people. */
function objectOf(entry: AuditEntry, names: AuditNames): string {
  const word = objectWord(entry.object)
  const name = nameOf(entry, names)
  if (name !== null) return `${word} ${quoted(name)}`
  return /^[aeiouM]/.test(word) ? `an ${word}` : `a ${word}`
}

function nameOf(entry: AuditEntry, names: AuditNames): string | null {
  const { name } = detailOf(entry)
  if (typeof name === 'string') return name
  const known = names.get(entry.object_id)
  if (known !== undefined) return known
  return isId(entry.object_id) || entry.object_id === '' ? null : entry.object_id
}

function placeOf({ object, room_id }: AuditEntry, names: AuditNames): string {
  if (!room_id || object === 'room') return ''
  const room = names.get(room_id)
  return room === undefined ? '' : ` in room ${quoted(room)}`
}

const credentialWords: Record<string, string> = {
  local_key: 'with the server’s key',
  no_auth: 'without a sign-in (--no-auth)',
  token: 'with a token',
  browser_session: 'in a browser',
  agent: 'during a run',
}

/** How and from where: `with token ‘ci’, from 10.0.0.7, as owner`. */
export function circumstancesOf({ credential, credential_id, address, role }: AuditEntry, names: AuditNames): string {
  const token = credential === 'token' && credential_id ? names.get(credential_id) : undefined
  const how = token === undefined ? credentialWords[credential] : `with token ${quoted(token)}`
  return [how, address && `from ${address}`, role !== 'none' && role !== '' && `as ${role}`].filter(Boolean).join(', ')
}

function detailOf({ detail }: Pick<AuditEntry, 'detail'>): Record<string, unknown> {
  return typeof detail === 'object' && detail !== null ? (detail as Record<string, unknown>) : {}
}

function isId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}

function quoted(text: string): string {
  return `‘${text}’`
}
