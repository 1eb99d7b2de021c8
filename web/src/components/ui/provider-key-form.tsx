import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Check } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { saveProvider, testProvider } from '@/lib/api/provider-settings'
import { providersQuery } from '@/lib/api/queries'
import type { Provider } from '@/lib/api/types'
import { Button } from './button'
import { ProblemText } from './problem-text'
import { t } from '../texts'
import styles from './provider-key-form.module.css'

/** Takes the key of a model API, stores it, and tries it at once. */
export function ProviderKeyForm({ provider }: { provider: Provider }): ReactNode {
  const [key, setKey] = useState('')
  const queries = useQueryClient()
  const save = useMutation({
    mutationFn: async (value: string) => {
      const { base_url, default_model, limits, source } = provider
      // Settings are replaced as a whole: what the workspace has set stays, what is the server's is not copied.
      const kept = source === 'settings' ? { base_url, default_model, limits } : {}
      await saveProvider(provider.id, { ...kept, key: value })
      return testProvider(provider.id)
    },
    onSuccess: ({ ok }) => ok && setKey(''),
    onSettled: () => queries.invalidateQueries(providersQuery),
  })
  const result = save.data
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault()
        save.mutate(key.trim())
      }}
    >
      <input
        type="password"
        autoComplete="off"
        spellCheck={false}
        aria-label={t.apiKeyOf(provider.label)}
        placeholder={t.pasteTheKey}
        value={key}
        onChange={(event) => setKey(event.target.value)}
        onPaste={(event) => {
          const pasted = event.clipboardData.getData('text/plain').trim()
          if (pasted === '' || key !== '') return
          event.preventDefault()
          setKey(pasted)
          save.mutate(pasted)
        }}
      />
      <Button type="submit" size="small" look="primary" isBusy={save.isPending} disabled={key.trim() === ''}>
        {save.isPending ? t.testing : t.saveAndTest}
      </Button>
      <ProblemText error={save.error} />
      {result && (
        <p className={styles.result} data-ok={result.ok || undefined} role="status">
          {result.ok && <Check size={14} aria-hidden />}
          {result.message}
        </p>
      )}
    </form>
  )
}
