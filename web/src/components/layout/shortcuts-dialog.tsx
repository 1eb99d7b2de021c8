import type { ReactNode } from 'react'
import { commandStore } from '@/lib/commands'
import { useStore } from '@/lib/store'
import { Dialog } from '../ui/dialog'
import { Kbd } from '../ui/kbd'
import styles from './shortcuts-dialog.module.css'

/** Keys that belong to a place rather than to a command. */
const others = [
  { title: 'Send the message', keys: 'Enter' },
  { title: 'New line in the message', keys: 'Shift+Enter' },
  { title: 'Mention an agent', keys: '@' },
  { title: 'Use a skill or a command', keys: '/' },
  { title: 'Get your last message back', keys: 'ArrowUp' },
]

export function ShortcutsDialog({ onClose }: { onClose: () => void }): ReactNode {
  const withKeys = useStore(commandStore).filter((command) => command.keys)
  const all = [...withKeys.map(({ title, keys = '' }) => ({ title, keys })), ...others]
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className={styles.list}>
        {all.map(({ title, keys }) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>
              <Kbd keys={keys} />
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
