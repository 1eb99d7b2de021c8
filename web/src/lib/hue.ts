/** One of eight colours for a thing with a name or id; the same one everywhere and every time. */
export function hueOf(id: string): number {
  let hash = 0
  for (let i = 0; i < id.length; i += 1) hash = (hash * 31 + id.charCodeAt(i)) >>> 0
  return hash % 8
}
