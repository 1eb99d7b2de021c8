import type { Message, Room } from '@/lib/api/types'
import { personName } from '@/lib/person-name'
import { resultText } from './tool-input'
import { t } from '../texts'

/** The conversation as a document that reads well without this program. */
export function toMarkdown(room: Pick<Room, 'name'>, messages: readonly Message[]): string {
  return [`# ${room.name}`, ...messages.map(messageToMarkdown)].join('\n\n') + '\n'
}

function messageToMarkdown(message: Message): string {
  const who = message.author.kind === 'person' ? personName(message.author.name) : message.author.name
  const how = message.status === 'partial' ? t.stoppedEarlySuffix : message.status === 'streaming' ? t.stillAnswering : ''
  const parts = message.parts.map((part) => {
    if (part.type === 'text') return part.text
    if (part.type === 'thinking') return quoted(t.thinkingWith(part.text))
    const result = part.result ? `\n\n${part.result.is_error ? t.error : t.result}:\n\n${fenced(resultText(part.result.content))}` : ''
    return t.toolWith(part.name, fenced(JSON.stringify(part.input, null, 2), 'json'), result)
  })
  const files = (message.attachments ?? []).map((file) => `- ${file.name} (${file.media_type}): <${file.url}>`)
  const body = [...parts, files.join('\n')].filter((text) => text !== '').join('\n\n')
  return `## ${who}\n\n${message.created_at} · #${message.seq}${how}\n\n${body}`
}

function quoted(text: string): string {
  return text
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n')
}

/** The fence is longer than any in the text, so the text cannot end it. */
export function fenced(text: string, language = ''): string {
  const runs = text.match(/`+/g) ?? []
  const fence = '`'.repeat(Math.max(3, ...runs.map((run) => run.length + 1)))
  return `${fence}${language}\n${text}\n${fence}`
}

export function toJson(room: Room, messages: readonly Message[], now: Date): string {
  return `${JSON.stringify({ exported_at: now.toISOString(), room, messages }, null, 2)}\n`
}
