/** One host in each line; spaces and commas separate them too. */
export function hostsFrom(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((host) => host !== ''))]
}
