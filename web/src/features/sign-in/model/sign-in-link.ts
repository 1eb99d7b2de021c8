import { isOwnEndpoint } from '@/lib/own-endpoint'
import { createStore } from '@/lib/store'

const path = '/sign-in'

/**
 * Takes the code of a one-time link (`/sign-in#code=…`) and removes it from the address bar and the history, where it would be seen,
 * shared and bookmarked. The address keeps `next`, the page to show afterwards.
 */
export function takeCode({ location, history }: Pick<Window, 'location' | 'history'>): string | null {
  if (location.pathname.replace(/\/$/, '') !== path || location.hash === '') return null
  const fragment = new URLSearchParams(location.hash.slice(1))
  const next = fragment.get('next')
  const search = next === null ? location.search : `?${new URLSearchParams({ next }).toString()}`
  history.replaceState(null, '', path + search)
  return fragment.get('code')?.trim() || null
}

/** The code that this page was opened with and that has not been used yet. Taken on import, so that nothing comes before it. */
export const pendingCode = createStore(takeCode(window))

// Another link that is pasted into the address bar of this page does not load it again.
window.addEventListener('hashchange', () => {
  const code = takeCode(window)
  if (code !== null) pendingCode.set(code)
})

/** Where to go after signing in: a page of this server, else the first one. */
export function nextPage(next: unknown, origin: string): string {
  if (typeof next !== 'string' || !/^\/(?![/\\])/.test(next) || isOwnEndpoint(next, origin)) return '/'
  const { pathname, search, hash } = new URL(next, origin)
  // Resolving may leave an address that begins with two slashes, which is another host.
  return pathname.startsWith('//') ? '/' : pathname + search + hash
}
