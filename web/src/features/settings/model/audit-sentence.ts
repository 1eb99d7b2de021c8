import type { AuditEntry } from '@/lib/api/types'
import { t } from '../texts'

/** Names of objects by their ids, as far as this page knows them. */
export type AuditNames = ReadonlyMap<string, string>

/** What was done, in one sentence without a full stop: `Ada revoked token ‘ci’`. */
export function sentenceOf(entry: AuditEntry, names: AuditNames): string {
  const times = entry.count > 1 ? t.timesWithinAMinute(entry.count) : ''
  return `${authorOf(entry)} ${deedOf(entry, names)}${placeOf(entry, names)}${times}`
}

export function authorOf({ user_name, credential }: Pick<AuditEntry, 'user_name' | 'credential'>): string {
  if (user_name) return user_name === 'local' ? t.theOperator : user_name
  return { agent: t.anAgent, system: t.theServer, none: t.someoneWhoWasNotSignedIn }[credential] ?? t.someone
}

function deedOf(entry: AuditEntry, names: AuditNames): string {
  const { action, object } = entry
  const detail = detailOf(entry)
  const what = objectOf(entry, names)
  switch (action) {
    case 'sign_in':
      return t.signedInWord
    case 'sign_out':
      return t.signedOut
    case 'refuse':
      return t.wasRefused(entry.object_id, typeof detail.status === 'number' ? ` (${detail.status})` : '')
    case 'start':
      return t.startedTheProgram(quoted(entry.object_id))
    case 'approve':
      return { allow: t.allowedAToolCall, deny: t.deniedAToolCall }[String(detail.decision)] ?? t.answeredAnApproval
    case 'forget':
      return object === 'tool' ? t.withdrewThePermissionFor(what) : t.removed(what)
    case 'trust':
      return t.trustedTheMcpServersOfAFolder
    case 'distrust':
      return t.stoppedTrustingTheMcpServersOfA
    case 'propose':
      return object === 'proposal' ? t.proposedAChangeToASkill : t.proposedAChangeTo(what)
    case 'purge':
      return t.deletedAndHadItErasedAtOnce(what)
    case 'erase':
      return t.erasedWhichHadBeenDeleted(what)
    default:
      return deedWords()[action]?.(what) ?? `${action.replaceAll('_', ' ')} ${what}`
  }
}

/** Most deeds are a verb and its object. */
function deedWords(): Record<string, (what: string) => string> {
  return {
    create: t.didCreate,
    update: t.didChange,
    delete: t.didDelete,
    post: t.didPost,
    cancel: t.didStop,
    rate: t.didRate,
    accept: t.didAccept,
    reject: t.didReject,
    revoke: t.didRevoke,
  }
}

const objectWords: Record<string, string> = {
  get browser_session() { return t.browserSession },
  get mcp_file() { return t.mcpJsonFile },
  get mcp_server() { return t.mcpServer },
  get upload() { return t.file },
  get agent() { return t.agent },
  get room() { return t.room },
  get message() { return t.message },
  get run() { return t.run },
  get approval() { return t.approval },
  get tool() { return t.tool },
  get user() { return t.user },
}

export function objectWord(object: string): string {
  return objectWords[object] ?? object.replaceAll('_', ' ')
}

/** With its name where one is known; ids tell nothing to people. */
function objectOf(entry: AuditEntry, names: AuditNames): string {
  const word = objectWord(entry.object)
  const name = nameOf(entry, names)
  if (name !== null) return `${word} ${quoted(name)}`
  return t.oneOf(word)
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
  return room === undefined ? '' : t.inRoom(quoted(room))
}

const credentialWords: Record<string, string> = {
  get local_key() { return t.withTheServersKey },
  get no_auth() { return t.withoutASignInNoAuth },
  get token() { return t.withAToken },
  get browser_session() { return t.inABrowser },
  get agent() { return t.duringARun },
}

/** How and from where: `with token ‘ci’, from 10.0.0.7, as owner`. */
export function circumstancesOf({ credential, credential_id, address, role }: AuditEntry, names: AuditNames): string {
  const token = credential === 'token' && credential_id ? names.get(credential_id) : undefined
  const how = token === undefined ? credentialWords[credential] : t.withToken(quoted(token))
  return [how, address && t.from(address), role !== 'none' && role !== '' && t.as(role)].filter(Boolean).join(', ')
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
