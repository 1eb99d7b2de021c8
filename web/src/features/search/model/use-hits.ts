import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { Command } from '@/lib/commands'
import { hitsQuery } from '../api/search'
import { useLaterText } from './use-later-text'
import { t } from '../texts'

/** Fewer letters are in almost every message. */
const leastLetters = 2

/** Messages with the words that are typed in the palette, and the way to all of them. */
export function useHits(text: string): Command[] {
  const navigate = useNavigate()
  const words = useLaterText(text.trim())
  const isWanted = words.length >= leastLetters
  const { data } = useQuery({ ...hitsQuery(words), enabled: isWanted })
  if (!isWanted) return []
  const hits = (data?.hits ?? []).flatMap(({ kind, id, room_id: roomId, seq, title, snippet }): Command[] =>
    kind === 'message' && roomId
      ? [{ id: `hit-${id}`, title: snippet.text, snippet, detail: title, group: 'messages', run: () => void navigate({ to: '/rooms/$roomId', params: { roomId }, search: { m: seq ?? undefined } }) }]
      : [],
  )
  return [...hits, { id: 'search-all', title: t.searchFor(words), group: 'messages', run: () => void navigate({ to: '/search', search: { q: words } }) }]
}
