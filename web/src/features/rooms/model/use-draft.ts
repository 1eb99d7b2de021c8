import { useEffect, useState } from 'react'
import { draftOf, keepDraft } from './drafts'

/** What is being typed in a room; it is there again after a reload. */
export function useDraft(roomId: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => draftOf(roomId))
  useEffect(() => {
    // Not with every letter, except for the one that leaves nothing: what was sent must not come back.
    if (text === '') return keepDraft(roomId, '')
    const timer = setTimeout(() => keepDraft(roomId, text), 300)
    return () => clearTimeout(timer)
  }, [roomId, text])
  return [text, setText]
}
