import { describe, expect, it } from 'vitest'
import type { Message } from '@/lib/api/types'
import { fenced, toMarkdown } from './export-room'

const base = { room_id: 'r', run_id: null, text: '', thinking: '', created_at: '2026-01-01T00:00:00Z' }
const messages: Message[] = [
  { ...base, id: '1', seq: 2, status: 'complete', author: { kind: 'person', name: 'local' }, parts: [{ type: 'text', text: 'Hi' }] },
  {
    ...base,
    id: '2',
    seq: 5,
    status: 'partial',
    author: { kind: 'agent', id: 'a', name: 'echo' },
    parts: [
      { type: 'thinking', text: 'one\ntwo' },
      { type: 'tool', tool_use_id: 't', name: 'look', input: { at: 1 }, result: { content: '```', is_error: true } },
      { type: 'text', text: 'Hello' },
    ],
  },
]

describe('an exported room', () => {
  it('has everything that was said, thought and done', () => {
    const text = toMarkdown({ name: 'Lobby' }, messages)
    expect(text).toContain('# Lobby\n\n## You\n\n2026-01-01T00:00:00Z · #2\n\nHi')
    expect(text).toContain('#5 · stopped early\n\n> *Thinking:* one\n> two\n\n**Tool: look**')
    expect(text).toContain('Error:\n\n````\n```\n````\n\nHello\n')
  })

  it('uses fences that a text cannot end', () => {
    expect(fenced('a')).toBe('```\na\n```')
    expect(fenced('`````')).toBe('``````\n`````\n``````')
  })
})
