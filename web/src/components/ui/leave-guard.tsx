import type { ReactNode } from 'react'
import { ConfirmDialog } from './confirm-dialog'
import { type Leaving, useLeaveGuard } from './use-leave-guard'

/** Asks before unsaved input is lost. Navigation after saving does not ask. */
export function LeaveGuard({ isChanged, isSaving }: { isChanged: boolean; isSaving: boolean }): ReactNode {
  const { leaving } = useLeaveGuard(isChanged && !isSaving)
  return (
    <LeaveDialog leaving={leaving} keep="Stay" confirm="Leave and lose it">
      What you changed here is not saved yet.
    </LeaveDialog>
  )
}

interface LeaveDialogProps {
  leaving: Leaving | null
  keep: string
  confirm: string
  children: string
}

export function LeaveDialog({ leaving, keep, confirm, children }: LeaveDialogProps): ReactNode {
  if (!leaving) return null
  return (
    <ConfirmDialog title="Leave without saving?" keep={keep} confirm={confirm} onConfirm={leaving.leave} onClose={leaving.stay}>
      <p>{children}</p>
    </ConfirmDialog>
  )
}
