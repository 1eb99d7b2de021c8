import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import type { useImport } from '../model/use-import'

/** A skill of that name is here: it may get a new version, and the one it had stays among its versions. */
export function ImportTaken({ bringIn }: { bringIn: ReturnType<typeof useImport> }): ReactNode {
  const { taken } = bringIn
  if (!taken) return null
  return (
    <ConfirmDialog
      title="This skill is here already"
      keep="Do not import it"
      confirm="Import it as a new version"
      isDangerous={false}
      isBusy={bringIn.isBusy}
      onConfirm={() => bringIn.start(taken.source, true)}
      onClose={bringIn.forget}
    >
      <p>{taken.detail}</p>
      <p>Imported as a new version it takes the place of the one that is here, which can be restored at any time.</p>
    </ConfirmDialog>
  )
}
