/** A list with one entry at another place. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const place = Math.min(list.length - 1, Math.max(0, to))
  const rest = list.filter((_, index) => index !== from)
  return [...rest.slice(0, place), ...list.slice(from, from + 1), ...rest.slice(place)]
}
