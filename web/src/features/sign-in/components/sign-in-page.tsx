import { type ReactNode, useEffect } from 'react'
import { Button } from '@/components/ui/button'
import { ApiError, explain } from '@/lib/api/client'
import { setPageTitle } from '@/lib/page-title'
import type { LinkSignIn } from '../model/use-link-sign-in'
import { SignInForm } from './sign-in-form'
import styles from './sign-in.module.css'

interface SignInPageProps {
  link: LinkSignIn
  onSignedIn: () => Promise<void>
}

/** All that someone sees who is not signed in. */
export function SignInPage({ link, onSignedIn }: SignInPageProps): ReactNode {
  return (
    <Frame>
      <h1>Sign in</h1>
      {link.error ? (
        <LinkProblem link={link} />
      ) : (
        <p className={styles.lead}>
          Open the link that <code>greenroom serve</code> printed, or run <code>greenroom auth link</code> for a new one. Or paste a token.
        </p>
      )}
      <SignInForm onSignedIn={onSignedIn} />
    </Frame>
  )
}

/** While the code of a link is exchanged. */
export function SigningIn(): ReactNode {
  return (
    <Frame>
      <h1>Sign in</h1>
      <p className={styles.lead} role="status">
        Signing in
      </p>
    </Frame>
  )
}

function Frame({ children }: { children: ReactNode }): ReactNode {
  useEffect(() => {
    setPageTitle('Sign in')
  }, [])
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <p className={styles.brand}>Greenroom</p>
        {children}
      </div>
    </main>
  )
}

/** The statuses of a code that the server does not accept. */
const refused = [400, 401, 404, 410, 422]

function LinkProblem({ link }: { link: LinkSignIn }): ReactNode {
  const { error } = link
  if (error instanceof ApiError && refused.includes(error.status)) {
    return (
      <div className={styles.problem} role="alert">
        <p>
          This link was used before or has expired. Run <code>greenroom auth link</code> on the machine that the server runs on for a new one, or paste a token.
        </p>
      </div>
    )
  }
  return (
    <div className={styles.problem} role="alert">
      <p>The link did not sign you in. {explain(error)}</p>
      <Button size="small" onClick={link.retry}>
        Try again
      </Button>
    </div>
  )
}
