import { nameOf } from './paths'

export type Preview = { kind: 'image' } | { kind: 'text'; text: string; language: string } | { kind: 'binary' } | { kind: 'empty' }

/** The types that the server sends as pictures; everything else it sends as a download. */
const pictures = new Set(['png', 'jpg', 'jpeg', 'gif', 'webp', 'avif'])

const languages: Record<string, string> = {
  cjs: 'javascript',
  js: 'javascript',
  kt: 'kotlin',
  md: 'markdown',
  mjs: 'javascript',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  sh: 'bash',
  ts: 'typescript',
  yml: 'yaml',
}

export function isPicture(path: string): boolean {
  return pictures.has(extensionOf(path))
}

/** What can be shown of a file, from its name and its first bytes. */
export function previewOf(path: string, content: Uint8Array): Preview {
  if (content.length === 0) return { kind: 'empty' }
  if (isPicture(path)) return { kind: 'image' }
  if (content.includes(0)) return { kind: 'binary' }
  const extension = extensionOf(path)
  // The end may be in the middle of a letter.
  const text = new TextDecoder().decode(content, { stream: true })
  return { kind: 'text', text, language: languages[extension] ?? extension }
}

function extensionOf(path: string): string {
  const name = nameOf(path)
  const dot = name.lastIndexOf('.')
  return dot > 0 ? name.slice(dot + 1).toLowerCase() : ''
}
