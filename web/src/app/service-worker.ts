/** Makes the page an app that can be installed and opens without a network. Browsers allow it on https and on this machine. */
export function registerServiceWorker(): void {
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return
  // After the page is there: it must not compete with what the person waits for. Without it, everything else works.
  addEventListener('load', () => void navigator.serviceWorker.register('/sw.js').catch(() => {}), { once: true })
}
