import { useQuery } from '@tanstack/react-query'
import { RefreshCw } from 'lucide-react'
import { type ReactNode, useId } from 'react'
import { Button } from '@/components/ui/button'
import fields from '@/components/ui/fieldset.module.css'
import { WithCode } from '@/components/ui/with-code'
import { explain } from '@/lib/api/client'
import { providersQuery } from '@/lib/api/queries'
import type { Provider } from '@/lib/api/types'
import { abilitiesOf, adviceOf, inOrder, isReady, providerTitle, versionOf } from '@/lib/providers'
import { t } from '../texts'
import styles from './provider-choice.module.css'

interface ProviderChoiceProps {
  value: string
  /** Shows installation advice while no provider is available. */
  isNew: boolean
  problem: string | null
  onChange: (provider: string) => void
}

/** As many as a newcomer can choose from; the others are there for those who know them. */
const mostShown = 3

/** Who answers: first what this machine has, then what it could have and how. */
export function ProviderChoice({ value, isNew, problem, onChange }: ProviderChoiceProps): ReactNode {
  const { data, error, isFetching, refetch } = useQuery(providersQuery)
  const id = useId()
  const providers = inOrder(data ?? [])
  const ready = providers.filter(isReady)
  const missing = providers.filter((provider) => !isReady(provider))
  const hasModel = ready.some((provider) => provider.name !== 'scripted')
  const shown = missing.filter((provider, index) => provider.name === value || (isNew && !hasModel && index < mostShown))
  const others = missing.filter((provider) => !shown.includes(provider))
  const chosen = providers.find((provider) => provider.name === value)
  const option = (provider: Provider): ReactNode => (
    <Option key={provider.name} provider={provider} group={id} isChosen={provider.name === value} onChoose={() => onChange(provider.name)} />
  )
  const again = (
    <Button size="small" look="quiet" className={styles.again} isBusy={isFetching} onClick={() => void refetch()}>
      <RefreshCw size={13} aria-hidden />
      {isFetching ? t.checking : t.checkAgain}
    </Button>
  )

  return (
    <fieldset className={fields.fieldset} aria-describedby={problem ? `${id}-problem` : undefined}>
      <legend className={fields.legend}>{t.provider}</legend>
      {error && !data && <p className={styles.problem}>{t.couldNotLoadProviders(explain(error))}</p>}
      <div className={styles.options}>{ready.map(option)}</div>
      {data && !chosen && value !== '' && (
        <p className={styles.problem}>{t.unknownProviderChooseAnotherOne(value)}</p>
      )}
      {shown.length > 0 && (
        <>
          <p className={styles.note}>{isNew && !hasModel ? t.notSetUpToUseAModel : t.notSetUp}</p>
          <div className={styles.options}>{shown.map(option)}</div>
        </>
      )}
      {others.length > 0 && (
        <details className={styles.missing}>
          <summary>{t.notSetUpWith(others.length, shown.length > 0 ? t.moreProviders : t.providers)}</summary>
          <div className={styles.options}>{others.map(option)}</div>
          {shown.length === 0 && again}
        </details>
      )}
      {shown.length > 0 && again}
      {problem && (
        <p id={`${id}-problem`} className={styles.problem} role="alert">
          {problem}
        </p>
      )}
    </fieldset>
  )
}

interface OptionProps {
  provider: Provider
  group: string
  isChosen: boolean
  onChoose: () => void
}

function Option({ provider, group, isChosen, onChoose }: OptionProps): ReactNode {
  const advice = adviceOf(provider)
  const version = versionOf(provider)
  return (
    <label className={styles.option} data-missing={advice !== null || undefined}>
      <input type="radio" name={group} checked={isChosen} onChange={onChoose} />
      <span className={styles.title}>
        <strong>{providerTitle(provider.name)}</strong>
        {version && <span className={styles.version}>{version}</span>}
      </span>
      <span className={styles.detail}>
        {advice !== null ? <WithCode text={advice} /> : provider.name === 'scripted' ? t.demoAgentNoKeyNeededFollowsScripted : abilitiesOf(provider).join(' · ')}
      </span>
    </label>
  )
}
