/** Paths of the server that do something when they are opened, instead of showing a page. */
const endpoints = new Set(['api', 'gateway', 'mcp', 'metrics', 'sign-in', 'sse'])
/** Nobody encodes a path more often than this to be read by a person. */
const mostDecodings = 5

/**
 * Whether an address leads to an endpoint of the server that `page` came from, however it is spelled. A click on it would be a
 * request with the rights of the person who clicks (such as `GET /api/execute/…?message=`), so text of a model must not offer it.
 * An address that cannot be read counts as one.
 */
export function isOwnEndpoint(href: string, page: string): boolean {
  const base = new URL(page)
  let url: URL
  try {
    // Reads it as a browser does: `\` is `/`, tabs and newlines are dropped, `.` and `%2e` are resolved, hosts are in lower case.
    url = new URL(href, base)
  } catch {
    return true
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return false
  return isSameServer(url, base) && leadsToEndpoint(url.pathname)
}

/** Cookies and servers do not care about the scheme, and a server on this machine has many names. */
function isSameServer(url: URL, page: URL): boolean {
  if (url.port !== page.port) return false
  const [host, own] = [hostOf(url), hostOf(page)]
  return host === own || (isLoopback(host) && isLoopback(own))
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/\.+$/, '')
}

function isLoopback(host: string): boolean {
  return /^(localhost|.+\.localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\]|\[::ffff:(7f[\da-f]{2}:[\da-f]{1,4}|0:0)\])$/.test(host)
}

function leadsToEndpoint(pathname: string): boolean {
  const path = decoded(pathname)
  if (path === null) return true
  const segments: string[] = []
  for (const raw of path.normalize('NFKC').toLowerCase().split(/[\\/]/)) {
    const segment = raw.replace(/;.*/s, '').replace(/[\s\p{Cc}\p{Cf}]/gu, '')
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return endpoints.has(segments[0] ?? '')
}

/** Without any percent-encoding, or null where that is not possible. */
function decoded(path: string): string | null {
  let current = path
  for (let round = 0; round < mostDecodings; round += 1) {
    let next: string
    try {
      next = decodeURIComponent(current)
    } catch {
      return null
    }
    if (next === current) return current
    current = next
  }
  return null
}

/** The address of an uploaded file, which may be shown: it is of this server, and never runs anything. */
export function isUpload(address: string): boolean {
  return /^\/api\/uploads\/[0-9a-f-]+$/.test(address)
}
