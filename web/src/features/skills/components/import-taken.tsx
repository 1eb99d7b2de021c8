import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import type { useImport } from '../model/use-import'

/** A skill of that name is here: it may get a new version, and the one it had stays among its versions. */
export function ImportTaken({ bringIn }: { bringIn: ReturnType<typeof useImport> }): ReactNode {
  const { taken } = bringIn
  if (!taken) return null
  return (
    <ConfirmDialog
      title="This skill already exists"
      keep="Cancel"
      confirm="Import as a new version"
      isDangerous={false}
      isBusy={bringIn.isBusy}
      onConfirm={() => bringIn.start(taken.source, true)}
      onClose={bringIn.forget}
    >
      <p>{taken.detail}</p>
      <p>Importing adds a new version. The current one can be restored at any time.</p>
    </ConfirmDialog>
  )
}
