import { ArrowDown, ArrowUp, SkipForward } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { IconButton } from '@/components/ui/button'
import type { Tape } from '@/lib/api/types'
import { moved } from '../model/reorder'
import { cellReason, cellStatus } from '../model/tape-words'
import { useAgents } from '../model/use-agents'
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
  const list = useRef<HTMLOListElement>(null)
  const pressed = useRef<string | null>(null)
  const [dragged, setDragged] = useState<string | null>(null)
  const [over, setOver] = useState<string | null>(null)
  const planned = cells.filter(({ status }) => status === 'planned').map(({ id }) => id)

  const move = (cell: string, to: number): void => {
    const from = planned.indexOf(cell)
    if (from < 0 || to < 0 || to >= planned.length || from === to) return
    onReorder(moved(planned, from, to))
  }

  // The button that was pressed goes with its cell, and the focus with it.
  const order = planned.join()
  useEffect(() => {
    if (pressed.current === null || isBusy) return
    list.current?.querySelector<HTMLElement>(`[data-cell="${pressed.current}"] button:enabled`)?.focus()
    pressed.current = null
  }, [order, isBusy])

  const press = (cell: string, to: number): void => {
    pressed.current = cell
    move(cell, to)
  }

  return (
    <ol ref={list}>
      {cells.map((cell) => {
        const names = cell.agents.map(nameOf).join(', ')
        const place = planned.indexOf(cell.id)
        const isPlanned = place >= 0
        return (
          // Keyboards and screen readers have the buttons.
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
          <li
            key={cell.id}
            data-status={cell.status}
            data-cell={cell.id}
            data-over={(over === cell.id && dragged !== cell.id) || undefined}
            draggable={isPlanned && planned.length > 1}
            onDragStart={(event) => {
              event.dataTransfer.effectAllowed = 'move'
              event.dataTransfer.setData('text/plain', names)
              setDragged(cell.id)
            }}
            onDragOver={(event) => {
              if (dragged === null || !isPlanned) return
              event.preventDefault()
              setOver(cell.id)
            }}
            onDragEnd={() => {
              setDragged(null)
              setOver(null)
            }}
            onDrop={(event) => {
              if (dragged === null || !isPlanned) return
              event.preventDefault()
              move(dragged, place)
              setDragged(null)
              setOver(null)
            }}
          >
            <span className={styles.who}>
              <strong dir="auto">{names}</strong>
              <span>{[cellStatus(cell.status), cellReason(cell.reason)].join(' · ')}</span>
            </span>
            {isPlanned && (
              <span className={styles.actions}>
                {planned.length > 1 && (
                  <>
                    <IconButton label={t.moveEarlier(names)} disabled={isBusy || place === 0} onClick={() => press(cell.id, place - 1)}>
                      <ArrowUp size={14} aria-hidden />
                    </IconButton>
                    <IconButton label={t.moveLater(names)} disabled={isBusy || place === planned.length - 1} onClick={() => press(cell.id, place + 1)}>
                      <ArrowDown size={14} aria-hidden />
                    </IconButton>
                  </>
                )}
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
