import { realClock } from './clock'
import type { Feed, FeedParts } from './feed'
import { httpApi } from './feed-api'

/** What a feed needs, from a real browser. */
export const browserParts: FeedParts = {
  api: httpApi,
  clock: realClock,
  pageSize: 60,
  open(events) {
    const address = new URL('/api/ws', location.href)
    address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new WebSocket(address)
    socket.addEventListener('open', () => events.onOpen())
    socket.addEventListener('message', ({ data }: MessageEvent<string>) => events.onText(data))
    socket.addEventListener('close', () => events.onClose())
    return { send: (text) => socket.send(text), close: () => socket.close() }
  },
  nextFrame(callback) {
    // A hidden tab does not render, but its state must not fall behind forever.
    if (document.hidden) setTimeout(callback, 200)
    else requestAnimationFrame(callback)
  },
}

/** Tells the feed what the browser knows about the network. The returned function stops that. */
export function listenToBrowser(feed: Feed): () => void {
  const online = (): void => feed.line.retry()
  const offline = (): void => feed.line.drop()
  const shown = (): void => {
    if (!document.hidden) feed.line.probe()
  }
  addEventListener('online', online)
  addEventListener('offline', offline)
  document.addEventListener('visibilitychange', shown)
  return () => {
    removeEventListener('online', online)
    removeEventListener('offline', offline)
    document.removeEventListener('visibilitychange', shown)
  }
}
