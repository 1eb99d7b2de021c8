/** Parses a typed number; null if empty. Other text is sent unchanged, so that the server reports the error. */
export function numberOf(text: string): number | null {
  const trimmed = text.trim()
  if (trimmed === '') return null
  const value = Number(trimmed)
  return Number.isFinite(value) ? value : (trimmed as unknown as number)
}
