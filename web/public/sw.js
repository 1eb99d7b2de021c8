// Keeps the page itself, so that it opens without a network and says that it is not connected. What the server knows is
// never kept: everything but pages and their hashed files goes past this worker.
const cacheName = 'shell-1'
const shell = '/'
const elsewhere = /^\/(api|docs|mcp|sse|metrics|healthz|readyz|openapi\.json)(\/|$)/

self.addEventListener('install', (event) => {
  event.waitUntil(
    caches
      .open(cacheName)
      .then((cache) => cache.add(shell))
      .then(() => self.skipWaiting()),
  )
})

self.addEventListener('activate', (event) => {
  const clean = async () => {
    const names = await caches.keys()
    await Promise.all(names.filter((name) => name !== cacheName).map((name) => caches.delete(name)))
    await self.clients.claim()
  }
  event.waitUntil(clean())
})

self.addEventListener('fetch', (event) => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  if (request.method !== 'GET' || origin !== self.location.origin) return
  if (request.mode === 'navigate' && !elsewhere.test(pathname)) event.respondWith(page(request))
  else if (pathname.startsWith('/assets/')) event.respondWith(asset(request))
})

/** The newest page; without a network, the one that was kept. All addresses of the app have the same page. */
async function page(request) {
  const cache = await caches.open(cacheName)
  try {
    const response = await fetch(request)
    const isPage = response.ok && !response.redirected && response.headers.get('content-type')?.startsWith('text/html')
    if (isPage) await keep(cache, response.clone())
    return response
  } catch (error) {
    const kept = await cache.match(shell)
    if (kept) return kept
    throw error
  }
}

/** A new page has new files: those of the old one are dropped. */
async function keep(cache, response) {
  const kept = await cache.match(shell)
  const text = await response.clone().text()
  if (kept && (await kept.text()) === text) return
  for (const request of await cache.keys()) if (new URL(request.url).pathname !== shell) await cache.delete(request)
  await cache.put(shell, response)
}

/** Names contain a hash of the content, so what was kept is right. */
async function asset(request) {
  const cache = await caches.open(cacheName)
  const kept = await cache.match(request)
  if (kept) return kept
  const response = await fetch(request)
  if (response.ok) await cache.put(request, response.clone())
  return response
}
