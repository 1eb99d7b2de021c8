import { type ReactNode, useEffect } from 'react'
import { SignInForm } from './sign-in-form'
import styles from './sign-in.module.css'

/** All that someone sees who is not signed in. */
export function SignInPage({ onSignedIn }: { onSignedIn: () => Promise<void> }): ReactNode {
  useEffect(() => {
    document.title = 'Sign in · Greenroom'
  }, [])
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <p className={styles.brand}>Greenroom</p>
        <h1>Sign in</h1>
        <p className={styles.lead}>This server is shared, so it asks who you are.</p>
        <SignInForm onSignedIn={onSignedIn} />
      </div>
    </main>
  )
}
