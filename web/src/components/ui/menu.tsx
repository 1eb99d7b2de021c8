import { type ReactNode, useEffect, useRef, useState } from 'react'
import { IconButton } from './button'
import styles from './menu.module.css'

export interface MenuItem {
  label: string
  icon?: ReactNode
  onSelect: () => void
  isDangerous?: boolean
}

interface MenuProps {
  label: string
  icon: ReactNode
  items: readonly MenuItem[]
  /** Which edge of the button the list keeps to. */
  side?: 'start' | 'end'
}

export function Menu({ label, icon, items, side = 'end' }: MenuProps): ReactNode {
  const [isOpen, setIsOpen] = useState(false)
  const root = useRef<HTMLDivElement>(null)

  useEffect(() => {
    if (!isOpen) return
    const entries = () => [...(root.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])]
    entries()[0]?.focus()
    const close = (event: PointerEvent): void => {
      if (!root.current?.contains(event.target as Node)) setIsOpen(false)
    }
    document.addEventListener('pointerdown', close)
    return () => document.removeEventListener('pointerdown', close)
  }, [isOpen])

  const leave = (): void => {
    setIsOpen(false)
    root.current?.querySelector('button')?.focus()
  }

  const move = (step: number): void => {
    const entries = [...(root.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])]
    const index = entries.indexOf(document.activeElement as HTMLElement)
    entries.at((index + step + entries.length) % entries.length)?.focus()
  }

  return (
    <div className={styles.root} ref={root}>
      <IconButton label={label} aria-haspopup="menu" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        {icon}
      </IconButton>
      {isOpen && (
        <div
          role="menu"
          aria-label={label}
          tabIndex={-1}
          className={styles.list}
          data-side={side}
          onKeyDown={(event) => {
            if (event.key === 'Escape' || event.key === 'Tab') leave()
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
                leave()
                item.onSelect()
              }}
            >
              {item.icon}
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  )
}
