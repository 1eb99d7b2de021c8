import type { ReactNode } from 'react'
import styles from './kbd.module.css'

const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? '')

const names: Record<string, string> = {
  mod: isMac ? '⌘' : 'Ctrl',
  alt: isMac ? '⌥' : 'Alt',
  ArrowDown: '↓',
  ArrowUp: '↑',
}

/** A key or keys, as they are called on this machine: `mod` is Command on a Mac and Control elsewhere. */
export function Kbd({ keys }: { keys: string }): ReactNode {
  const labels = keys.split('+').map((key) => names[key] ?? (key.length === 1 ? key.toUpperCase() : key))
  return (
    <span className={styles.keys}>
      {labels.map((name) => (
        <kbd key={name}>{name}</kbd>
      ))}
    </span>
  )
}
