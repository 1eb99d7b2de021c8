import type { ProjectEntry } from '@/lib/api/types'

/** A path that is being typed behind an `@`. */
export interface PathToken {
  /** Where the `@` stands. */
  start: number
  folder: string
  /** The beginning of a name in the folder. */
  word: string
}

/** What is listed of the folder that a path leads into. */
export interface MentionedFolder {
  folder: string
  entries: readonly ProjectEntry[]
}

const mostShown = 20

export function pathAt(text: string, caret: number): PathToken | null {
  const typed = /(?:^|[\s(])@([^\s@]*)$/u.exec(text.slice(0, caret))?.[1]
  if (typed === undefined) return null
  const slash = typed.lastIndexOf('/')
  return { start: caret - typed.length - 1, folder: typed.slice(0, Math.max(0, slash)), word: typed.slice(slash + 1) }
}

/** The files and folders that could be meant. */
export function entriesFor({ folder, word }: PathToken, listed: MentionedFolder | null): readonly ProjectEntry[] {
  if (listed?.folder !== folder) return []
  const wanted = word.toLowerCase()
  // A name with spaces would end in the middle.
  return listed.entries.filter(({ name, kind }) => (kind === 'file' || kind === 'folder') && name.toLowerCase().startsWith(wanted) && !/\s/.test(name)).slice(0, mostShown)
}

/** The text with the path in it. A folder is left open, so that one can go on into it. */
export function completePath(text: string, token: PathToken, caret: number, { name, kind }: ProjectEntry): { text: string; caret: number } {
  const path = token.folder === '' ? name : `${token.folder}/${name}`
  const inserted = kind === 'folder' ? `@${path}/` : `@${path} `
  const after = kind === 'folder' ? text.slice(caret) : text.slice(caret).replace(/^ /, '')
  return { text: text.slice(0, token.start) + inserted + after, caret: token.start + inserted.length }
}
