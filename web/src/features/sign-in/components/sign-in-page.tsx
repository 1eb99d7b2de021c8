import { type ReactNode, useEffect } from 'react'
import { Button } from '@/components/ui/button'
import { ApiError, explain } from '@/lib/api/client'
import { setPageTitle } from '@/lib/page-title'
import type { LinkSignIn } from '../model/use-link-sign-in'
import { SignInForm } from './sign-in-form'
import { WithCode } from '@/components/ui/with-code'
import { t } from '../texts'
import styles from './sign-in.module.css'

interface SignInPageProps {
  link: LinkSignIn
  onSignedIn: () => Promise<void>
}

/** All that someone sees who is not signed in. */
export function SignInPage({ link, onSignedIn }: SignInPageProps): ReactNode {
  return (
    <Frame>
      <h1>{t.signIn}</h1>
      {link.error ? (
        <LinkProblem link={link} />
      ) : (
        <p className={styles.lead}><WithCode text={t.openTheLinkThatGreenroomServePrintedSentence} /></p>
      )}
      <SignInForm onSignedIn={onSignedIn} />
    </Frame>
  )
}

/** While the code of a link is exchanged. */
export function SigningIn(): ReactNode {
  return (
    <Frame>
      <h1>{t.signIn}</h1>
      <p className={styles.lead} role="status">
        {t.signingInTitle}
      </p>
    </Frame>
  )
}

function Frame({ children }: { children: ReactNode }): ReactNode {
  useEffect(() => {
    setPageTitle(t.signIn)
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
        <p><WithCode text={t.thisLinkWasUsedBeforeOrHas} /></p>
      </div>
    )
  }
  return (
    <div className={styles.problem} role="alert">
      <p>{t.theLinkDidNotSignYouIn(explain(error))}</p>
      <Button size="small" onClick={link.retry}>
        {t.tryAgain}
      </Button>
    </div>
  )
}
