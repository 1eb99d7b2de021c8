import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { CopyButton } from '@/components/ui/copy-button'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { Field } from '@/components/ui/field'
import notes from '@/components/ui/note-box.module.css'
import { ProblemText } from '@/components/ui/problem-text'
import { sessionQuery, signIn } from '@/lib/api/session'
import { makeToken, tokensQuery } from '../api/settings'
import styles from './settings.module.css'

/** `isFirst`: the server has no accounts yet, and this gives it some. */
export function NewTokenDialog({ isFirst, onClose }: { isFirst: boolean; onClose: () => void }): ReactNode {
  const [name, setName] = useState('')
  // Kept apart from the mutation: the token is shown even if the sign-in after its creation fails.
  const [token, setToken] = useState<string | null>(null)
  const queries = useQueryClient()
  const form = useRef<HTMLFormElement>(null)

  // Focuses the name field; by default the dialog would focus its close button.
  useEffect(() => {
    form.current?.querySelector('input')?.focus()
  }, [])

  const create = useMutation({
    mutationFn: async () => {
      const created = await makeToken(name.trim())
      setToken(created.token)
      // From now on every request needs a token, including this page.
      if (created.turned_accounts_on) await signIn(created.token)
    },
    onSuccess: () => Promise.all([queries.invalidateQueries(tokensQuery), queries.invalidateQueries(sessionQuery)]),
  })

  return (
    <Dialog title={token === null ? 'New token' : 'Your new token'} onClose={onClose}>
      <form
        ref={form}
        className={dialogs.body}
        onSubmit={(event) => {
          event.preventDefault()
          if (token !== null) onClose()
          else if (name.trim() !== '') create.mutate()
        }}
      >
        {token === null ? (
          <>
            <Field
              label="Name"
              value={name}
              maxLength={100}
              onChange={(event) => setName(event.target.value)}
              hint="What it is for, such as “laptop” or “nightly job”."
            />
            {isFirst && (
              <p className={notes.warning}>
                From the first token on, every browser and program has to show one, on this machine too. This page is signed in with it at once;
                to let in others, make a token for each.
              </p>
            )}
          </>
        ) : (
          <ShownOnce token={token} />
        )}
        <ProblemText error={create.error} />
        <div className={styles.actions}>
          {token === null && <Button onClick={onClose}>Cancel</Button>}
          <Button type="submit" look="primary" isBusy={create.isPending} disabled={token === null && name.trim() === ''}>
            {token === null ? 'Make the token' : 'I have kept it'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function ShownOnce({ token }: { token: string }): ReactNode {
  return (
    <>
      <p>Keep it now: it is shown this once, and the server itself does not know it any more.</p>
      <div className={styles.secret}>
        <code>{token}</code>
        <CopyButton text={() => token} label="Copy the token" />
      </div>
    </>
  )
}
