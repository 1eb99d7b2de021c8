import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { CopyButton } from '@/components/ui/copy-button'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { Field } from '@/components/ui/field'
import { ProblemText } from '@/components/ui/problem-text'
import { makeToken, tokensQuery } from '../api/settings'
import { t } from '../texts'
import styles from './settings.module.css'

/** `isOpen`: the server asks nobody who they are, so nothing is to be confirmed. */
export function NewTokenDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }): ReactNode {
  const [name, setName] = useState('')
  const [confirm, setConfirm] = useState('')
  const [token, setToken] = useState<string | null>(null)
  const isComplete = name.trim() !== '' && (isOpen || confirm.trim() !== '')
  const queries = useQueryClient()
  const form = useRef<HTMLFormElement>(null)

  // Focuses the name field; by default the dialog would focus its close button.
  useEffect(() => {
    form.current?.querySelector('input')?.focus()
  }, [])

  const create = useMutation({
    mutationFn: async () => {
      const created = await makeToken(name.trim(), confirm.trim())
      setToken(created.token)
    },
    onSuccess: () => queries.invalidateQueries(tokensQuery),
  })

  return (
    <Dialog title={token === null ? t.newToken : t.yourNewToken} isSticky={token !== null} onClose={onClose}>
      <form
        ref={form}
        className={dialogs.body}
        onSubmit={(event) => {
          event.preventDefault()
          if (token !== null) onClose()
          else if (isComplete) create.mutate()
        }}
      >
        {token === null ? (
          <>
            <Field
              label={t.name}
              value={name}
              maxLength={100}
              onChange={(event) => setName(event.target.value)}
              hint={t.whatItIsForSuchAsLaptop}
            />
            {!isOpen && (
              <Field
                label={t.yourTokenOrTheServersKey}
                type="password"
                autoComplete="off"
                value={confirm}
                onChange={(event) => setConfirm(event.target.value)}
                hint={t.confirmsThatItIsYouOnThe}
              />
            )}
            <p>{t.itReadsAndRunsFor90Days}</p>
          </>
        ) : (
          <ShownOnce token={token} />
        )}
        <ProblemText error={create.error} />
        <div className={styles.actions}>
          {token === null && <Button onClick={onClose}>{t.cancel}</Button>}
          <Button type="submit" look="primary" isBusy={create.isPending} disabled={token === null && !isComplete}>
            {token === null ? t.createToken : t.done}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function ShownOnce({ token }: { token: string }): ReactNode {
  return (
    <>
      <p>{t.copyItNowYouWontSeeIt}</p>
      <div className={styles.secret}>
        <code>{token}</code>
        <CopyButton text={() => token} label={t.copyTheToken} />
      </div>
    </>
  )
}
