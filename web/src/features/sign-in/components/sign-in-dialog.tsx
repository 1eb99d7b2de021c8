import type { ReactNode } from 'react'
import { useModal } from '@/components/ui/use-modal'
import { SignInForm } from './sign-in-form'
import { WithCode } from '@/components/ui/with-code'
import { t } from '../texts'
import styles from './sign-in.module.css'

/** Over the page that one was on, which stays as it is. It cannot be waved away: nothing behind it would work. */
export function SignInDialog({ onSignedIn }: { onSignedIn: () => Promise<void> }): ReactNode {
  const ref = useModal()
  return (
    <dialog ref={ref} className={styles.dialog} aria-labelledby="sign-in-title" onCancel={(event) => event.preventDefault()}>
      <div className={styles.card}>
        <h2 id="sign-in-title">{t.signInAgain}</h2>
        <p className={styles.lead}>{t.youveBeenSignedOutWhatYouTyped}</p>
        <p className={styles.lead}><WithCode text={t.openTheLinkThatGreenroomServePrinted} /></p>
        <SignInForm onSignedIn={onSignedIn} />
      </div>
    </dialog>
  )
}
