export const places = ['messages', 'rooms', 'agents', 'files'] as const
export type Place = (typeof places)[number]

export interface SearchFilter {
  q?: string
  in?: Place
}

/** The address names what is looked for, and where. */
export function readSearchFilter(search: Record<string, unknown>): SearchFilter {
  const place = places.find((one) => one === search.in)
  return { ...(typeof search.q === 'string' && search.q !== '' ? { q: search.q } : {}), ...(place ? { in: place } : {}) }
}
