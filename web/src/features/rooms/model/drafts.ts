import { remember, remembered } from '@/lib/storage'

/** What was typed and not sent yet, kept over a reload. */
export function draftOf(roomId: string): string {
  return remembered(`draft.${roomId}`, '')
}

export function keepDraft(roomId: string, text: string): void {
  remember(`draft.${roomId}`, text === '' ? null : text)
}
