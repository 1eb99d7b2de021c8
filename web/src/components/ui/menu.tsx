import { type ReactNode, useRef, useState } from 'react'
import { IconButton } from './button'
import { type MenuItem, MenuList } from './menu-list'
import styles from './menu.module.css'

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

  const close = (byKey: boolean): void => {
    setIsOpen(false)
    if (byKey) root.current?.querySelector('button')?.focus()
  }

  return (
    <div className={styles.root} ref={root}>
      <IconButton label={label} aria-haspopup="menu" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        {icon}
      </IconButton>
      {isOpen && <MenuList label={label} items={items} side={side} onClose={close} />}
    </div>
  )
}
