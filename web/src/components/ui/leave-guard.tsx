import { useBlocker } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ConfirmDialog } from './confirm-dialog'
import { t } from '../texts'

/**
 * Asks before unsaved changes are lost. Navigation while they are being saved does not ask, and switching tabs within a
 * page is not leaving.
 */
export function LeaveGuard({ isChanged, isSaving }: { isChanged: boolean; isSaving: boolean }): ReactNode {
  const wouldLose = isChanged && !isSaving
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => wouldLose && current.pathname !== next.pathname,
    enableBeforeUnload: () => wouldLose,
    withResolver: true,
  })
  if (blocker.status !== 'blocked') return null
  return (
    <ConfirmDialog title={t.discardChanges} keep={t.keepEditing} confirm={t.discardChangesTitle} onConfirm={blocker.proceed} onClose={blocker.reset}>
      <p>{t.yourChangesOnThisPageAreNot}</p>
    </ConfirmDialog>
  )
}
