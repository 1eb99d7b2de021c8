import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Check, CircleAlert } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ImportDialogFrame } from '@/components/ui/import-dialog-frame'
import textStyles from '@/components/ui/text.module.css'
import { agentsQuery } from '@/lib/api/queries'
import type { Agent, AgentSpec } from '@/lib/api/types'
import { createAgent } from '../api/agent-commands'
import { freeName } from '../model/draft'
import { problemOf } from '../model/problems'
import { providerTitle } from '@/lib/providers'
import { fromFile } from '../model/transfer'
import { t } from '../texts'
import styles from './import-dialog.module.css'

/** More would be no file of agents. */
const largestFile = 20_000_000

type Outcome = { created: Agent } | { problem: string }

export function ImportDialog({ onClose }: { onClose: () => void }): ReactNode {
  const [text, setText] = useState('')
  const [outcomes, setOutcomes] = useState<readonly Outcome[]>([])
  const queries = useQueryClient()
  const navigate = useNavigate()
  const reading = text.trim() === '' ? null : fromFile(text)
  const specs = reading && 'agents' in reading ? reading.agents : []

  const read = (content: string): void => {
    setText(content)
    setOutcomes([])
  }

  const pick = async (file: File): Promise<void> => {
    read(file.size > largestFile ? t.tooLarge : await file.text())
  }

  const create = useMutation({
    mutationFn: async () => {
      const existing: { name: string }[] = [...(await queries.fetchQuery(agentsQuery).catch(() => []))]
      const done: Outcome[] = []
      for (const spec of specs) {
        const outcome = await createOne({ ...spec, name: freeName(spec.name, existing) })
        if ('created' in outcome) existing.push(outcome.created)
        done.push(outcome)
        setOutcomes([...done])
      }
      return done
    },
    onSuccess: async (done) => {
      await queries.invalidateQueries(agentsQuery)
      const [only] = done
      if (done.length === 1 && only && 'created' in only) {
        onClose()
        await navigate({ to: '/agents/$agentId', params: { agentId: only.created.id } })
      }
    },
  })
  const isDone = outcomes.length > 0 && outcomes.length === specs.length && !create.isPending

  return (
    <ImportDialogFrame
      title={t.importAgents}
      choose={t.chooseAFile}
      fileLabel={t.fileWithAgents}
      text={text}
      rows={4}
      placeholder='{"name": "Reviewer", "provider": "claude_code"}'
      problem={reading && 'problem' in reading ? reading.problem : null}
      onText={read}
      onFile={(file) => void pick(file)}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{isDone ? t.done : t.cancel}</Button>
          {!isDone && (
            <Button look="primary" isBusy={create.isPending} disabled={specs.length === 0} onClick={() => create.mutate()}>
              {create.isPending ? t.creatingOf(outcomes.length + 1, specs.length) : specs.length > 1 ? t.createAgents(specs.length) : t.createAgent}
            </Button>
          )}
        </>
      }
    >
      {specs.length > 0 && (
        <ul className={styles.found} aria-label={t.agentsFound}>
          {specs.map((spec, index) => (
            <Found key={index} spec={spec} outcome={outcomes[index]} />
          ))}
        </ul>
      )}
    </ImportDialogFrame>
  )
}

function Found({ spec, outcome }: { spec: AgentSpec; outcome: Outcome | undefined }): ReactNode {
  return (
    <li>
      <strong>{outcome && 'created' in outcome ? outcome.created.name : spec.name}</strong>
      <span>{[providerTitle(spec.provider), spec.model].filter(Boolean).join(' · ')}</span>
      {outcome && 'created' in outcome && <Check size={15} role="img" aria-label={t.created} className={styles.good} />}
      {outcome && 'problem' in outcome && (
        <p className={textStyles.problem} role="alert">
          <CircleAlert size={13} aria-hidden /> {outcome.problem}
        </p>
      )}
    </li>
  )
}

async function createOne(spec: AgentSpec): Promise<Outcome> {
  try {
    return { created: await createAgent(spec) }
  } catch (error) {
    return { problem: problemOf(error).text }
  }
}
