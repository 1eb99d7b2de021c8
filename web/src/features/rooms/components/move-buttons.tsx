import { ArrowDown, ArrowUp } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import { t } from '../texts'

interface MoveButtonsProps {
  /** What is moved. */
  name: string
  place: number
  count: number
  isBusy: boolean
  onMove: (to: number) => void
}

/** Moves one item of a list that can be reordered; nothing where there is only one. */
export function MoveButtons({ name, place, count, isBusy, onMove }: MoveButtonsProps): ReactNode {
  if (count < 2) return null
  return (
    <>
      <IconButton label={t.moveEarlier(name)} disabled={isBusy || place === 0} onClick={() => onMove(place - 1)}>
        <ArrowUp size={14} aria-hidden />
      </IconButton>
      <IconButton label={t.moveLater(name)} disabled={isBusy || place === count - 1} onClick={() => onMove(place + 1)}>
        <ArrowDown size={14} aria-hidden />
      </IconButton>
    </>
  )
}
