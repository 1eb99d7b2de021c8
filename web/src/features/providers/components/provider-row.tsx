import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemText } from '@/components/ui/problem-text'
import { WithCode } from '@/components/ui/with-code'
import { testProvider } from '@/lib/api/provider-settings'
import type { Provider } from '@/lib/api/types'
import { isReady, lackOf, versionOf } from '@/lib/providers'
import { sourceWords } from '../model/provider-groups'
import { ProviderForm } from './provider-form'
import { t } from '../texts'
import styles from './providers-page.module.css'

interface ProviderRowProps {
  provider: Provider
  isOpen: boolean
  onToggle: () => void
  /** Opens another one: the key of a program is that of its API. */
  onOpen: (id: string) => void
}

export function ProviderRow({ provider, isOpen, onToggle, onOpen }: ProviderRowProps): ReactNode {
  const test = useMutation({ mutationFn: () => testProvider(provider.id) })
  const { id, label, hint, settings_provider: owner } = provider
  const facts = [versionOf(provider), sourceWords(provider.source), provider.has_key && t.keyIsSet, provider.default_model].filter(Boolean)
  return (
    <li className={styles.provider}>
      <div className={styles.head}>
        <span className={styles.name}>
          <strong>{label}</strong>
          {facts.length > 0 && <span className={styles.facts}>{facts.join(' · ')}</span>}
        </span>
        <span className={styles.state} data-ready={isReady(provider) || undefined}>
          {lackOf(provider) ?? t.ready}
        </span>
        <Button size="small" isBusy={test.isPending} aria-label={t.testWith(label)} onClick={() => test.mutate()}>
          {t.test}
        </Button>
        {owner && owner !== id ? (
          <Button size="small" aria-label={t.setKeyFor(label)} onClick={() => onOpen(owner)}>
            {t.key}
          </Button>
        ) : (
          <Button size="small" aria-expanded={isOpen} aria-label={t.settingsOf(label)} onClick={onToggle}>
            {t.settings}
          </Button>
        )}
      </div>
      {hint && (
        <p className={styles.hint}>
          <WithCode text={hint} />
        </p>
      )}
      {test.data && (
        <p className={styles.result} data-ok={test.data.ok || undefined} role="status">
          {test.data.message}
        </p>
      )}
      <ProblemText error={test.error} />
      {isOpen && <ProviderForm provider={provider} />}
    </li>
  )
}
