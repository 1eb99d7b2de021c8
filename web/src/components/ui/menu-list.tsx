import { type CSSProperties, type ReactNode, useEffect, useRef } from 'react'
import styles from './menu.module.css'

export interface MenuItem {
  label: string
  icon?: ReactNode
  onSelect: () => void
  isDangerous?: boolean
}

interface MenuListProps {
  label: string
  items: readonly MenuItem[]
  side?: 'start' | 'end'
  /** Where it stands, if not below the button it belongs to. */
  style?: CSSProperties
  /** Called before an item's action, and by Escape, Tab and a press elsewhere. */
  onClose: (byKey: boolean) => void
}

/** The entries of a menu. It takes the focus, and the arrow keys go from entry to entry. */
export function MenuList({ label, items, side, style, onClose }: MenuListProps): ReactNode {
  const list = useRef<HTMLDivElement>(null)
  const close = useRef(onClose)
  useEffect(() => {
    close.current = onClose
  })

  const entries = (): HTMLElement[] => [...(list.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])]

  useEffect(() => {
    list.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus()
    const press = (event: PointerEvent): void => {
      if (!list.current?.parentElement?.contains(event.target as Node)) close.current(false)
    }
    document.addEventListener('pointerdown', press)
    return () => document.removeEventListener('pointerdown', press)
  }, [])

  const move = (step: number): void => {
    const all = entries()
    const index = all.indexOf(document.activeElement as HTMLElement)
    all.at((index + step + all.length) % all.length)?.focus()
  }

  return (
    <div
      ref={list}
      role="menu"
      aria-label={label}
      tabIndex={-1}
      className={styles.list}
      data-side={side}
      style={style}
      onKeyDown={(event) => {
        if (event.key === 'Escape' || event.key === 'Tab') onClose(true)
        else if (event.key === 'ArrowDown') move(1)
        else if (event.key === 'ArrowUp') move(-1)
        else return
        event.preventDefault()
        event.stopPropagation()
      }}
    >
      {items.map((item) => (
        <button
          key={item.label}
          type="button"
          role="menuitem"
          className={styles.item}
          data-dangerous={item.isDangerous || undefined}
          onClick={() => {
            onClose(true)
            item.onSelect()
          }}
        >
          {item.icon}
          {item.label}
        </button>
      ))}
    </div>
  )
}
