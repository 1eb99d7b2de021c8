import { type MouseEvent, type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { type MenuItem, MenuList } from './menu-list'
import styles from './menu.module.css'

export interface Point {
  x: number
  y: number
}

/** Where a menu belongs: at the pointer, or below what has the focus if a key asked for it. */
export function menuPoint(event: MouseEvent): Point {
  if (event.clientX > 0 || event.clientY > 0) return { x: event.clientX, y: event.clientY }
  const { left, bottom } = event.currentTarget.getBoundingClientRect()
  return { x: left + 16, y: bottom - 8 }
}

interface ContextMenuProps {
  label: string
  at: Point
  items: readonly MenuItem[]
  onClose: (byKey: boolean) => void
}

/** A menu at a place of the page, moved so that all of it is seen. */
export function ContextMenu({ label, at, items, onClose }: ContextMenuProps): ReactNode {
  const root = useRef<HTMLDivElement>(null)
  const [place, setPlace] = useState(at)

  useLayoutEffect(() => {
    const box = root.current?.firstElementChild?.getBoundingClientRect()
    if (!box) return
    const within = (wanted: number, size: number, all: number): number => Math.max(4, Math.min(wanted, all - size - 4))
    setPlace({ x: within(at.x, box.width, window.innerWidth), y: within(at.y, box.height, window.innerHeight) })
  }, [at])

  return (
    <div ref={root} className={styles.floating}>
      <MenuList label={label} items={items} style={{ left: place.x, top: place.y }} onClose={onClose} />
    </div>
  )
}
