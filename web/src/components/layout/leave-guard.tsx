import { useBlocker } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import styles from './leave-guard.module.css'

/** Asks before unsaved input is lost. Navigation after saving does not ask. */
export function LeaveGuard({ isChanged, isSaving }: { isChanged: boolean; isSaving: boolean }): ReactNode {
  const isAtRisk = isChanged && !isSaving
  const blocker = useBlocker({
    // Another view of the same thing keeps what was typed.
    shouldBlockFn: ({ current, next }) => isAtRisk && current.pathname !== next.pathname,
    enableBeforeUnload: isAtRisk,
    withResolver: true,
  })
  if (blocker.status !== 'blocked') return null
  return (
    <Dialog title="Leave without saving?" onClose={blocker.reset}>
      <div className={styles.body}>
        <p>What you changed here is not saved yet.</p>
        <div className={styles.actions}>
          <Button onClick={blocker.reset}>Stay</Button>
          <Button look="danger" onClick={blocker.proceed}>
            Leave and lose it
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
