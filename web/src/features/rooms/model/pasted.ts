import { notify } from '@/lib/notices'
import { t } from '../texts'

/** A message may have a million bytes; more than this is hard to work with in a field anyway. */
const longestPaste = 200_000

/** The files in what was pasted. A text that is too long for a message becomes one. */
export function pastedFiles(pasted: Pick<DataTransfer, 'files' | 'getData'>): File[] {
  if (pasted.files.length > 0) return [...pasted.files]
  const text = pasted.getData('text/plain')
  if (text.length <= longestPaste) return []
  notify(t.thePastedTextIsLongSoIt)
  return [new File([text], 'pasted-text.txt', { type: 'text/plain' })]
}
