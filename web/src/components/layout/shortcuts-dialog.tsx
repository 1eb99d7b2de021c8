import type { ReactNode } from 'react'
import { commandStore } from '@/lib/commands'
import { useStore } from '@/lib/store'
import { Dialog } from '../ui/dialog'
import { Kbd } from '../ui/kbd'
import { t } from '../texts'
import styles from './shortcuts-dialog.module.css'

/** Keys that belong to a place rather than to a command. */
const others = [
  { get title() { return t.sendTheMessage }, keys: 'Enter' },
  { get title() { return t.newLineInTheMessage }, keys: 'Shift+Enter' },
  { get title() { return t.mentionAnAgent }, keys: '@' },
  { get title() { return t.useASkillOrACommand }, keys: '/' },
  { get title() { return t.getYourLastMessageBack }, keys: 'ArrowUp' },
]

export function ShortcutsDialog({ onClose }: { onClose: () => void }): ReactNode {
  const withKeys = useStore(commandStore).filter((command) => command.keys)
  const all = [...withKeys.map(({ title, keys = '' }) => ({ title, keys })), ...others]
  return (
    <Dialog title={t.keyboardShortcuts} onClose={onClose}>
      {/* It scrolls on a small screen; the keyboard needs a way in to do that. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className={styles.scroll} tabIndex={0} role="group" aria-label={t.keyboardShortcuts}>
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
      </div>
    </Dialog>
  )
}
