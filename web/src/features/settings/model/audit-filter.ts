/** What the security log is narrowed to, as in the address. */
export interface AuditFilter {
  action?: string
  object?: string
  /** The id of a user. */
  user?: string
}

/** From an address that anyone may have written. */
export function readAuditFilter(search: Record<string, unknown>): AuditFilter {
  const filter: AuditFilter = {}
  const isWord = (value: unknown): value is string => typeof value === 'string' && /^[a-z_]{1,40}$/.test(value)
  if (isWord(search.action)) filter.action = search.action
  if (isWord(search.object)) filter.object = search.object
  if (typeof search.user === 'string' && /^[0-9a-f-]{36}$/.test(search.user)) filter.user = search.user
  return filter
}
