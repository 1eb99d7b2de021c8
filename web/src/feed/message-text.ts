import type { Message } from './state'

/** The joined text; what was written after a tool call begins a new paragraph, as in the server's own fold. */
export function textOf(message: Message, type: 'text' | 'thinking' = 'text'): string {
  let joined = ''
  let interrupted = false
  for (const part of message.parts) {
    if (part.type === 'tool') interrupted = true
    if (part.type !== type || part.text === '') continue
    if (interrupted && joined !== '') {
      const present = trailing(joined) + leading(part.text)
      joined += '\n'.repeat(Math.max(0, 2 - present))
    }
    interrupted = false
    joined += part.text
  }
  return joined
}

const trailing = (text: string) => text.length - text.replace(/\n+$/, '').length
const leading = (text: string) => text.length - text.replace(/^\n+/, '').length
