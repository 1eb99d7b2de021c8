import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Field } from '@/components/ui/field'
import { ApiError, explain } from '@/lib/api/client'
import { signIn } from '@/lib/api/session'
import styles from './sign-in.module.css'

export function SignInForm({ onSignedIn }: { onSignedIn: () => Promise<void> }): ReactNode {
  const [token, setToken] = useState('')
  const [isBusy, setIsBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const form = useRef<HTMLFormElement>(null)

  useEffect(() => {
    form.current?.querySelector('input')?.focus()
  }, [])

  const submit = async (): Promise<void> => {
    setIsBusy(true)
    setProblem(null)
    try {
      await signIn(token.trim())
      await onSignedIn()
    } catch (error) {
      setProblem(problemOf(error))
      setIsBusy(false)
      form.current?.querySelector('input')?.focus()
    }
  }

  return (
    <form
      ref={form}
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault()
        if (token.trim() !== '' && !isBusy) void submit()
      }}
    >
      <Field
        label="Token"
        type="password"
        autoComplete="current-password"
        spellCheck={false}
        value={token}
        onChange={(event) => setToken(event.target.value)}
        hint={
          <>
            To make one, run <code>greenroom token create</code> on the machine that the server runs on.
          </>
        }
      />
      {problem && (
        <p className={styles.problem} role="alert">
          {problem}
        </p>
      )}
      <Button type="submit" look="primary" isBusy={isBusy} disabled={token.trim() === ''}>
        {isBusy ? 'Signing in' : 'Sign in'}
      </Button>
    </form>
  )
}

function problemOf(error: unknown): string {
  const isUnknown = error instanceof ApiError && (error.status === 401 || error.status === 403 || error.status === 422 || error.status === 400)
  return isUnknown ? 'This server does not know that token. It may have been revoked, or something is missing at its start or end.' : explain(error)
}
