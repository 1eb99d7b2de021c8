export const tabs = ['files', 'commands', 'rooms', 'sandbox'] as const
export type Tab = (typeof tabs)[number]

export interface ProjectSearch {
  tab?: Exclude<Tab, 'files'>
  /** The file that is shown. */
  file?: string
}

/** The address names the part that is looked at; without one it is the files. */
export function readProjectSearch(search: Record<string, unknown>): ProjectSearch {
  const tab = tabs.find((one) => one === search.tab)
  if (tab !== undefined && tab !== 'files') return { tab }
  return typeof search.file === 'string' && search.file !== '' ? { file: search.file } : {}
}
