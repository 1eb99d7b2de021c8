/** A number that was typed; null where nothing was. What is no number goes to the server as it is: it says what is wrong with it. */
export function numberOf(text: string): number | null {
  const trimmed = text.trim()
  if (trimmed === '') return null
  const value = Number(trimmed)
  return Number.isFinite(value) ? value : (trimmed as unknown as number)
}
