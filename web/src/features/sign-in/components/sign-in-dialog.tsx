import type { ReactNode } from 'react'
import { useModal } from '@/components/ui/use-modal'
import { SignInForm } from './sign-in-form'
import styles from './sign-in.module.css'

/** Over the page that one was on, which stays as it is. It cannot be waved away: nothing behind it would work. */
export function SignInDialog({ onSignedIn }: { onSignedIn: () => Promise<void> }): ReactNode {
  const ref = useModal()
  return (
    <dialog ref={ref} className={styles.dialog} aria-labelledby="sign-in-title" onCancel={(event) => event.preventDefault()}>
      <div className={styles.card}>
        <h2 id="sign-in-title">Sign in again</h2>
        <p className={styles.lead}>You’ve been signed out. What you typed is still here.</p>
        <p className={styles.lead}>
          Open the link that <code>greenroom serve</code> printed, or run <code>greenroom auth link</code>; come back to this page afterwards.
        </p>
        <SignInForm onSignedIn={onSignedIn} />
      </div>
    </dialog>
  )
}
