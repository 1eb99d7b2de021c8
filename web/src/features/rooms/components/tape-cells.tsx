import { SkipForward } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import type { Tape } from '@/lib/api/types'
import { cellReason, cellStatus } from '../model/tape-words'
import { useAgents } from '../model/use-agents'
import { useReorder } from '../model/use-reorder'
import { MoveButtons } from './move-buttons'
import { t } from '../texts'
import styles from './tape-section.module.css'

interface TapeCellsProps {
  cells: Tape['cells']
  isBusy: boolean
  onSkip: (cell: string) => void
  /** All planned cells in their new order. */
  onReorder: (cells: string[]) => void
}

/** The plan, in order. What has not begun can be skipped, dragged, and moved by buttons. */
export function TapeCells({ cells, isBusy, onSkip, onReorder }: TapeCellsProps): ReactNode {
  const agents = useAgents()
  const nameOf = (id: string): string => agents.find((agent) => agent.id === id)?.name ?? t.agentWord
  const planned = cells.filter(({ status }) => status === 'planned').map(({ id }) => id)
  const { list, press, item } = useReorder(planned, isBusy, onReorder)

  return (
    <ol ref={list}>
      {cells.map((cell) => {
        const names = cell.agents.map(nameOf).join(', ')
        const place = planned.indexOf(cell.id)
        return (
          <li key={cell.id} data-status={cell.status} {...item(cell.id, names)}>
            <span className={styles.who}>
              <strong dir="auto">{names}</strong>
              <span>{[cellStatus(cell.status), cellReason(cell.reason)].join(' · ')}</span>
            </span>
            {place >= 0 && (
              <span className={styles.actions}>
                <MoveButtons name={names} place={place} count={planned.length} isBusy={isBusy} onMove={(to) => press(cell.id, to)} />
                <IconButton label={t.skipAgent(names)} disabled={isBusy} onClick={() => onSkip(cell.id)}>
                  <SkipForward size={14} aria-hidden />
                </IconButton>
              </span>
            )}
          </li>
        )
      })}
    </ol>
  )
}
