import { expect, it } from 'vitest'
import type { RoomEvent } from './event'
import { confirmed, withPending } from './pending'
import { foldRoom } from './fold-room'
import { emptyRoom } from './state'

const file = (id: string) => ({ name: `${id}.txt`, media_type: 'text/plain', url: `/api/uploads/${id}` })
const sent = (key: string, id: string) => ({ key, text: '', attachments: [file(id)], mentions: [], whenBusy: null, createdAt: '' })

function posted(seq: number, message_id: string, id: string): RoomEvent {
  const data = { message_id, author: { kind: 'person', name: 'local' }, text: '', when_busy: 'enqueue', attachments: [file(id)] }
  return { id: `event-${seq}`, room_id: 'r', seq, type: 'message_posted', run_id: null, agent_id: null, data, created_at: '' }
}

it('messages without a word are told apart by their files', () => {
  const both = withPending(withPending(emptyRoom('r', 'e'), sent('first', 'a')), sent('second', 'b'))
  const shown = foldRoom(both, [posted(1, 'm', 'b')])
  expect(shown.pending.map(({ key, messageId }) => [key, messageId])).toEqual([
    ['first', null],
    ['second', 'm'],
  ])
  expect(confirmed(shown, 'second', { id: 'm', seq: 1 }).pending.map(({ key }) => key)).toEqual(['first'])
})
