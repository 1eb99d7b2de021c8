/** Lets the browser save a text as a file. */
export function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
}

/** What a file system takes as a name. */
export function fileName(title: string, extension: string): string {
  const plain = title.normalize('NFKD').replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '')
  return `${plain.slice(0, 60) || 'room'}.${extension}`
}

const extensions: Record<string, string> = { bash: 'sh', shell: 'sh', csharp: 'cs', javascript: 'js', kotlin: 'kt', markdown: 'md', python: 'py', ruby: 'rb', rust: 'rs', text: 'txt', typescript: 'ts', yaml: 'yml' }

/** The ending of a file in a language of Markdown. */
export function extensionOf(language: string): string {
  const name = language.toLowerCase()
  return extensions[name] ?? (/^[a-z0-9]{1,8}$/.test(name) ? name : 'txt')
}
