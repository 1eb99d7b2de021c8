/** `docs/a.md` in the folder `docs`; the folder of the project itself is empty. */
export function childPath(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`
}

export function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** Whether a path is this folder or lies in it. */
export function isWithin(path: string, folder: string): boolean {
  return folder === '' || path === folder || path.startsWith(`${folder}/`)
}
