import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { Field } from '@/components/ui/field'
import { ProblemText } from '@/components/ui/problem-text'
import { addProvider, testProvider } from '@/lib/api/provider-settings'
import { providersQuery } from '@/lib/api/queries'
import { notify } from '@/lib/notices'
import { idFrom } from '../model/settings-draft'
import { t } from '../texts'

const exampleAddress = 'https://openrouter.ai/api/v1'
const exampleName = 'OpenRouter'

/** Adds a server that speaks OpenAI's chat completions. */
export function NewProviderDialog({ onClose }: { onClose: () => void }): ReactNode {
  const [label, setLabel] = useState('')
  const [address, setAddress] = useState('')
  const [key, setKey] = useState('')
  const queries = useQueryClient()
  const add = useMutation({
    mutationFn: async () => {
      const added = await addProvider({ id: idFrom(label), label: label.trim(), base_url: address.trim(), key: key.trim() || undefined })
      return testProvider(added.id)
    },
    onSuccess: ({ ok, message }) => {
      notify(ok ? t.addedAndWorks(message) : t.addedButFails(message), ok ? undefined : 'problem')
      onClose()
    },
    onSettled: () => queries.invalidateQueries(providersQuery),
  })
  return (
    <Dialog title={t.addAServer} onClose={onClose}>
      <form
        className={dialogs.body}
        onSubmit={(event) => {
          event.preventDefault()
          add.mutate()
        }}
      >
        <Field label={t.name} value={label} required placeholder={exampleName} autoComplete="off" hint={idFrom(label) === '' ? undefined : t.agentsNameIt(idFrom(label))} onChange={(event) => setLabel(event.target.value)} />
        <Field label={t.address} value={address} required type="url" spellCheck={false} placeholder={exampleAddress} autoComplete="off" hint={t.chatCompletionsIsAdded} onChange={(event) => setAddress(event.target.value)} />
        <Field label={t.apiKey} value={key} type="password" spellCheck={false} autoComplete="off" hint={t.keysAreEncrypted} onChange={(event) => setKey(event.target.value)} />
        <ProblemText error={add.error} />
        <div className={dialogs.actions}>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button type="submit" look="primary" isBusy={add.isPending} disabled={idFrom(label) === '' || address.trim() === ''}>
            {t.addAndTest}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
