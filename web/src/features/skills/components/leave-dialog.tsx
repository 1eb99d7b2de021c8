import type { ReactNode } from 'react'
import { ConfirmDialog } from './confirm-dialog'

export function LeaveDialog({ leaving }: { leaving: { leave: () => void; stay: () => void } | null }): ReactNode {
  if (!leaving) return null
  return (
    <ConfirmDialog title="Leave without saving?" keep="Stay here" confirm="Leave without saving" onConfirm={leaving.leave} onClose={leaving.stay}>
      <p>What you changed on this page is not saved yet and would be lost.</p>
    </ConfirmDialog>
  )
}
