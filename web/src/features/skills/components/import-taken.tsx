import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import type { useImport } from '../model/use-import'
import { t } from '../texts'

/** A skill of that name is here: it may get a new version, and the one it had stays among its versions. */
export function ImportTaken({ bringIn }: { bringIn: ReturnType<typeof useImport> }): ReactNode {
  const { taken } = bringIn
  if (!taken) return null
  return (
    <ConfirmDialog
      title={t.thisSkillAlreadyExists}
      keep={t.cancel}
      confirm={t.importAsANewVersion}
      isDangerous={false}
      isBusy={bringIn.isBusy}
      onConfirm={() => bringIn.start(taken.source, true)}
      onClose={bringIn.forget}
    >
      <p>{taken.detail}</p>
      <p>{t.importingAddsANewVersionTheCurrent}</p>
    </ConfirmDialog>
  )
}
