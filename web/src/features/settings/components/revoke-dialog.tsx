import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import notes from '@/components/ui/note-box.module.css'
import { sessionQuery } from '@/lib/api/session'
import type { Token } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { revokeToken, tokensQuery } from '../api/settings'
import { WithCode } from '@/components/ui/with-code'
import { t } from '../texts'

export function RevokeDialog({ token, onClose }: { token: Token; onClose: () => void }): ReactNode {
  const queries = useQueryClient()
  const revoke = useMutation({
    mutationFn: () => revokeToken(token.id),
    onSuccess: async () => {
      onClose()
      notify(t.wasRevoked(token.name))
      // This browser may have signed in with it.
      await Promise.all([queries.invalidateQueries(sessionQuery), queries.invalidateQueries(tokensQuery)])
    },
  })
  return (
    <ConfirmDialog title={t.revoke(token.name)} keep={t.cancel} confirm={t.revokeToken} isBusy={revoke.isPending} error={revoke.error} onConfirm={() => revoke.mutate()} onClose={onClose}>
      <p>{t.programsThatUseItLoseAccessAt}</p>
      {token.current && (
        <p className={notes.warning}><WithCode text={t.thisBrowserSignedInWithItToo} /></p>
      )}
    </ConfirmDialog>
  )
}
