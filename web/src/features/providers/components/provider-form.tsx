import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useId, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Field } from '@/components/ui/field'
import { ProblemText } from '@/components/ui/problem-text'
import { modelsQuery, resetProvider, saveProvider, testProvider } from '@/lib/api/provider-settings'
import { providersQuery } from '@/lib/api/queries'
import { queryKeys } from '@/lib/api/query-keys'
import type { Provider } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { isReady } from '@/lib/providers'
import { type SettingsDraft, draftOf, settingsFrom } from '../model/settings-draft'
import { t } from '../texts'
import styles from './providers-page.module.css'

/** The key, the address and the defaults of one provider. */
export function ProviderForm({ provider }: { provider: Provider }): ReactNode {
  const [draft, setDraft] = useState<SettingsDraft>(() => draftOf(provider))
  const queries = useQueryClient()
  const listId = useId()
  const models = useQuery({ ...modelsQuery(provider.id), enabled: isReady(provider) }).data ?? []
  const refresh = async (): Promise<void> => {
    await Promise.all([queries.invalidateQueries(providersQuery), queries.invalidateQueries({ queryKey: queryKeys.models(provider.id) })])
  }
  const save = useMutation({
    mutationFn: async () => {
      await saveProvider(provider.id, settingsFrom(draft))
      return testProvider(provider.id)
    },
    onSuccess: () => setDraft({ ...draft, key: '' }),
    onSettled: refresh,
  })
  const reset = useMutation({
    mutationFn: () => resetProvider(provider.id),
    onSuccess: async () => {
      notify(t.settingsWereRemoved(provider.label))
      await refresh()
    },
  })
  const field = (name: keyof SettingsDraft) => ({ value: draft[name], autoComplete: 'off', onChange: (event: { target: { value: string } }) => setDraft({ ...draft, [name]: event.target.value }) })
  const isEndpoint = provider.kind === 'endpoint'
  return (
    <form
      className={styles.form}
      aria-label={t.settingsOf(provider.label)}
      onSubmit={(event) => {
        event.preventDefault()
        save.mutate()
      }}
    >
      <Field label={t.apiKey} type="password" spellCheck={false} placeholder={provider.has_key ? t.aKeyIsStored : ''} hint={t.keysAreEncrypted} {...field('key')} />
      <Field label={t.address} type="url" spellCheck={false} placeholder={provider.base_url ?? ''} hint={isEndpoint ? undefined : t.leaveEmptyForTheUsual} required={isEndpoint} {...field('baseUrl')} />
      {isEndpoint && <Field label={t.name} {...field('label')} />}
      <Field label={t.defaultModel} list={listId} hint={models.length > 0 ? t.modelsListed(models.length) : t.theModelOfAgentsThatChooseNone} {...field('defaultModel')} />
      <datalist id={listId}>
        {models.map((model) => (
          <option key={model.id} value={model.id}>
            {model.label}
          </option>
        ))}
      </datalist>
      <div className={styles.numbers}>
        <Field label={t.contextWindow} type="number" min={2048} max={10_000_000} {...field('contextWindow')} />
        <Field label={t.longestAnswer} type="number" min={1} max={1_000_000} {...field('maxOutputTokens')} />
      </div>
      <ProblemText error={save.error ?? reset.error} />
      {save.data && (
        <p className={styles.result} data-ok={save.data.ok || undefined} role="status">
          {save.data.ok ? t.savedAndWorks(save.data.message) : t.savedButFails(save.data.message)}
        </p>
      )}
      <div className={styles.actions}>
        {provider.source === 'settings' && (
          <Button look="danger" isBusy={reset.isPending} onClick={() => reset.mutate()}>
            {isEndpoint ? t.deleteServer : t.removeSettings}
          </Button>
        )}
        <Button type="submit" look="primary" isBusy={save.isPending}>
          {save.isPending ? t.testing : t.saveAndTest}
        </Button>
      </div>
    </form>
  )
}
