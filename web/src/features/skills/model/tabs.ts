export const tabs = ['edit', 'files', 'versions', 'training'] as const
export type Tab = (typeof tabs)[number]

/** The address names the part that is looked at; without one it is the editor. */
export function readTab(search: Record<string, unknown>): { tab?: Exclude<Tab, 'edit'> } {
  const tab = tabs.find((one) => one === search.tab)
  return tab === undefined || tab === 'edit' ? {} : { tab }
}
