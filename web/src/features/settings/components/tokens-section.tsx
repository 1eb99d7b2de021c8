import { useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemNote } from '@/components/ui/problem-note'
import { Section } from '@/components/ui/section'
import type { Token } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { tokensQuery } from '../api/settings'
import { NewTokenDialog } from './new-token-dialog'
import { RevokeDialog } from './revoke-dialog'
import { t } from '../texts'
import styles from './settings.module.css'

export function TokensSection({ hasAccounts }: { hasAccounts: boolean }): ReactNode {
  const { data: tokens, error, refetch } = useQuery(tokensQuery)
  const [isMaking, setIsMaking] = useState(false)
  const [revoking, setRevoking] = useState<Token | null>(null)
  return (
    <Section
      isCompact
      title={t.tokens}
      lead={
        hasAccounts
          ? t.tokensSignInABrowserAProgram
          : t.thisServerWasStartedWithNoAuth
      }
      action={
        <Button onClick={() => setIsMaking(true)}>
          <Plus size={15} aria-hidden />
          {t.newToken}
        </Button>
      }
    >
      {error && <ProblemNote title={t.couldNotLoadTokens} error={error} onRetry={() => void refetch()} />}
      {tokens && tokens.length > 0 && (
        <ul className={styles.tokens}>
          {tokens.map((token) => (
            <li key={token.id}>
              <div className={styles.token}>
                <strong>{token.name}</strong>
                <span>
                  {t.created} <time dateTime={token.created_at} title={fullTime(token.created_at)}>{shortTime(token.created_at)}</time>
                  {', '}
                  <Used at={token.last_used_at ?? null} />
                  {token.current && t.thisBrowser}
                </span>
              </div>
              <Button size="small" look="danger" aria-label={t.revokeWith(token.name)} onClick={() => setRevoking(token)}>
                {t.revokeTitle}
              </Button>
            </li>
          ))}
        </ul>
      )}
      {isMaking && <NewTokenDialog isOpen={!hasAccounts} onClose={() => setIsMaking(false)} />}
      {revoking && <RevokeDialog token={revoking} onClose={() => setRevoking(null)} />}
    </Section>
  )
}

function Used({ at }: { at: string | null }): ReactNode {
  if (at === null) return t.neverUsed
  return (
    <>
      {t.lastUsed} <time dateTime={at} title={fullTime(at)}>{shortTime(at)}</time>
    </>
  )
}
