import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import notes from '@/components/ui/note-box.module.css'
import { ProblemText } from '@/components/ui/problem-text'
import { sessionQuery } from '@/lib/api/session'
import type { Token } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { useAction } from '@/lib/use-action'
import { revokeToken, tokensQuery } from '../api/settings'

export function RevokeDialog({ token, onClose }: { token: Token; onClose: () => void }): ReactNode {
  const { isBusy, reason, run } = useAction()
  const queries = useQueryClient()
  const revoke = (): Promise<boolean> =>
    run(async () => {
      await revokeToken(token.id)
      onClose()
      notify(`${token.name} was revoked.`)
      // It may have been the one that this page came in with.
      await Promise.all([queries.invalidateQueries(sessionQuery), queries.invalidateQueries(tokensQuery)])
    })
  return (
    <ConfirmDialog title={`Revoke ${token.name}?`} keep="Keep it" confirm="Revoke the token" isBusy={isBusy} onConfirm={() => void revoke()} onClose={onClose}>
      <p>Whoever uses it is locked out at once, and so is every browser that signed in with it. This cannot be taken back.</p>
      {token.current && (
        <p className={notes.warning}>
          This browser signed in with it too: you will be asked for another token. If it is your last one, make another first, here or by{' '}
          <code>greenroom token create</code> on the server’s machine.
        </p>
      )}
      <ProblemText text={reason} />
    </ConfirmDialog>
  )
}
