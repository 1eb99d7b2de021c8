import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Field } from '@/components/ui/field'
import { ApiError, explain } from '@/lib/api/client'
import { signIn } from '@/lib/api/session'
import { WithCode } from '@/components/ui/with-code'
import { t } from '../texts'
import styles from './sign-in.module.css'

export function SignInForm({ onSignedIn }: { onSignedIn: () => Promise<void> }): ReactNode {
  const [token, setToken] = useState('')
  const form = useRef<HTMLFormElement>(null)

  useEffect(() => {
    form.current?.querySelector('input')?.focus()
  }, [])

  const enter = useMutation({
    mutationFn: async () => {
      await signIn(token.trim())
      await onSignedIn()
    },
    onError: () => form.current?.querySelector('input')?.focus(),
  })

  return (
    <form
      ref={form}
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault()
        if (token.trim() !== '' && !enter.isPending) enter.mutate()
      }}
    >
      <Field
        label={t.token}
        type="password"
        autoComplete="current-password"
        spellCheck={false}
        value={token}
        onChange={(event) => setToken(event.target.value)}
        hint={
          <><WithCode text={t.toCreateOneRunGreenroomTokenCreate} /></>
        }
      />
      {enter.error && (
        <p className={styles.problem} role="alert">
          {problemOf(enter.error)}
        </p>
      )}
      <Button type="submit" look="primary" isBusy={enter.isPending} disabled={token.trim() === ''}>
        {enter.isPending ? t.signingIn : t.signIn}
      </Button>
    </form>
  )
}

function problemOf(error: unknown): string {
  const isUnknown = error instanceof ApiError && (error.status === 401 || error.status === 403 || error.status === 422 || error.status === 400)
  return isUnknown ? t.thisServerDoesNotKnowThatToken : explain(error)
}
