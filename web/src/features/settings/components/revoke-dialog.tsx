import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import notes from '@/components/ui/note-box.module.css'
import { sessionQuery } from '@/lib/api/session'
import type { Token } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { revokeToken, tokensQuery } from '../api/settings'

export function RevokeDialog({ token, onClose }: { token: Token; onClose: () => void }): ReactNode {
  const queries = useQueryClient()
  const revoke = useMutation({
    mutationFn: () => revokeToken(token.id),
    onSuccess: async () => {
      onClose()
      notify(`${token.name} was revoked.`)
      // This browser may have signed in with it.
      await Promise.all([queries.invalidateQueries(sessionQuery), queries.invalidateQueries(tokensQuery)])
    },
  })
  return (
    <ConfirmDialog title={`Revoke ${token.name}?`} keep="Cancel" confirm="Revoke token" isBusy={revoke.isPending} error={revoke.error} onConfirm={() => revoke.mutate()} onClose={onClose}>
      <p>Programs that use it lose access at once, and so does every browser that signed in with it. This cannot be undone.</p>
      {token.current && (
        <p className={notes.warning}>
          This browser signed in with it too: you will be asked for another token. If it is your last one, make another first, here or by{' '}
          <code>greenroom token create --user local</code> on the server’s machine.
        </p>
      )}
    </ConfirmDialog>
  )
}
