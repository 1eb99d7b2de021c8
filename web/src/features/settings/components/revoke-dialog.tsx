import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import { explain } from '@/lib/api/client'
import { sessionQuery } from '@/lib/api/session'
import type { Token } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { revokeToken, tokensQuery } from '../api/settings'
import styles from './settings.module.css'

export function RevokeDialog({ token, onClose }: { token: Token; onClose: () => void }): ReactNode {
  const [isBusy, setIsBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const queries = useQueryClient()
  const revoke = async (): Promise<void> => {
    setIsBusy(true)
    try {
      await revokeToken(token.id)
      onClose()
      notify(`${token.name} was revoked.`)
      // It may have been the one that this page came in with.
      await Promise.all([queries.invalidateQueries(sessionQuery), queries.invalidateQueries(tokensQuery)])
    } catch (error) {
      setProblem(explain(error))
      setIsBusy(false)
    }
  }
  return (
    <Dialog title={`Revoke ${token.name}?`} onClose={onClose}>
      <div className={styles.form}>
        <p>Whoever uses it is locked out at once, and so is every browser that signed in with it. This cannot be taken back.</p>
        {token.current && (
          <p className={styles.warning}>
            This browser signed in with it too: you will be asked for another token. If it is your last one, make another first, here or by{' '}
            <code>greenroom token create</code> on the server’s machine.
          </p>
        )}
        {problem && (
          <p className={styles.problem} role="alert">
            {problem}
          </p>
        )}
        <div className={styles.actions}>
          <Button onClick={onClose}>Keep it</Button>
          <Button look="danger" isBusy={isBusy} onClick={() => void revoke()}>
            Revoke the token
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
