import { type ReactNode, useState } from 'react'
import { Palette } from '@/components/layout/palette'
import { useHits } from '@/features/search/model/use-hits'

/** The palette, with the messages that have the words. */
export function SearchPalette({ onClose }: { onClose: () => void }): ReactNode {
  const [text, setText] = useState('')
  return <Palette more={useHits(text)} onText={setText} onClose={onClose} />
}
