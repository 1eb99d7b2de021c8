import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useId, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { Field } from '@/components/ui/field'
import { ProblemText } from '@/components/ui/problem-text'
import { Select } from '@/components/ui/select'
import { modelsQuery } from '@/lib/api/provider-settings'
import { providersQuery, roomsQuery } from '@/lib/api/queries'
import type { Agent, MemberSettings, Room } from '@/lib/api/types'
import { changePolicy } from '../api/tape'
import { effortWord, settingsIn } from '../model/member-flags'
import { t } from '../texts'
import styles from './model-dialog.module.css'

type Choice = Partial<Pick<MemberSettings, 'model' | 'thinking'>>

/** For this room only: the agents keep their own settings for all others. */
export function ModelDialog({ room, members, onClose }: { room: Room; members: readonly Agent[]; onClose: () => void }): ReactNode {
  const queries = useQueryClient()
  const chosen = (agent: Agent): [string, Choice] => {
    const { model, thinking } = settingsIn(room, agent.id)
    return [agent.id, { model, thinking }]
  }
  const [choices, setChoices] = useState<Record<string, Choice>>(Object.fromEntries(members.map(chosen)))
  const save = useMutation({
    mutationFn: () => {
      const settings = Object.entries(choices).map(([id, { model, thinking }]) => [id, { model: model?.trim() || null, thinking: thinking ?? null }])
      return changePolicy(room.id, { members: Object.fromEntries(settings) })
    },
    onSuccess: async () => {
      await queries.invalidateQueries(roomsQuery)
      onClose()
    },
  })
  return (
    <Dialog title={t.modelAndEffort} onClose={onClose}>
      <form
        className={dialogs.body}
        onSubmit={(event) => {
          event.preventDefault()
          // Components above this one have a form too.
          event.stopPropagation()
          save.mutate()
        }}
      >
        <p className={styles.note}>{t.onlyInThisRoom}</p>
        {members.map((agent) => (
          <AgentModel
            key={agent.id}
            agent={agent}
            choice={choices[agent.id] ?? {}}
            onChange={(choice) => setChoices((all) => ({ ...all, [agent.id]: { ...all[agent.id], ...choice } }))}
          />
        ))}
        <ProblemText error={save.error} />
        <div className={dialogs.actions}>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button type="submit" look="primary" isBusy={save.isPending}>
            {t.save}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function AgentModel({ agent, choice, onChange }: { agent: Agent; choice: Choice; onChange: (choice: Choice) => void }): ReactNode {
  const listId = useId()
  const provider = useQuery(providersQuery).data?.find(({ id }) => id === agent.provider)
  // Without a list one can still type a name.
  const models = useQuery(modelsQuery(agent.provider)).data ?? []
  const own = agent.model ?? provider?.default_model ?? t.defaultModel
  const efforts = provider?.efforts ?? []
  return (
    <fieldset className={styles.agent}>
      <legend dir="auto">{agent.name}</legend>
      <Field
        label={t.model}
        list={listId}
        value={choice.model ?? ''}
        placeholder={t.agentsOwn(own)}
        maxLength={200}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        onChange={(event) => onChange({ model: event.target.value })}
      />
      <datalist id={listId}>
        {models.map(({ id, label }) => (
          <option key={id} value={id}>
            {label ?? id}
          </option>
        ))}
      </datalist>
      {efforts.length > 0 && (
        <Select
          label={t.reasoningEffort}
          value={choice.thinking ?? ''}
          options={[{ value: '', label: t.agentsOwnEffort }, ...efforts.map((effort) => ({ value: effort, label: effortWord(effort) }))]}
          onChange={(value) => onChange({ thinking: efforts.find((effort) => effort === value) ?? null })}
        />
      )}
    </fieldset>
  )
}
