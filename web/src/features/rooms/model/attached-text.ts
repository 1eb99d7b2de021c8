import { fenced } from './export-room'

export interface AttachedText {
  name: string
  text: string
}

/** A message may have 512 KiB in all. */
export const mostBytes = 400_000

/** The server takes no files yet, but a text can travel inside the message. */
export async function readText(file: File): Promise<AttachedText | string> {
  if (file.size > mostBytes) return `${file.name} is too large to travel inside a message.`
  const text = await file.text()
  // U+FFFD stands for bytes that are no text, U+0000 is in hardly any text and most other files.
  if (text.includes('\u0000') || text.includes('\uFFFD')) return `${file.name} is not a text, and this server takes no other files yet.`
  return { name: file.name, text }
}

export function withAttached(message: string, files: readonly AttachedText[]): string {
  const blocks = files.map(({ name, text }) => `${name}:\n\n${fenced(text.replace(/\n$/, ''), extensionOf(name))}`)
  return [message.trim(), ...blocks].filter((part) => part !== '').join('\n\n')
}

function extensionOf(name: string): string {
  return /\.([A-Za-z0-9]{1,12})$/.exec(name)?.[1]?.toLowerCase() ?? ''
}
