/** What this browser remembers. A browser may refuse to; then nothing is remembered and nothing breaks. */
export function remembered<T>(key: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(`greenroom.${key}`)
    return text === null ? otherwise : (JSON.parse(text) as T)
  } catch {
    return otherwise
  }
}

export function remember(key: string, value: unknown): void {
  try {
    if (value === null || value === undefined) localStorage.removeItem(`greenroom.${key}`)
    else localStorage.setItem(`greenroom.${key}`, JSON.stringify(value))
  } catch {
    // Full or forbidden: only a convenience is lost.
  }
}
