import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Segmented } from '@/components/ui/segmented'
import { providersQuery } from '@/lib/api/queries'
import type { Agent, WhenBusy } from '@/lib/api/types'
import { plural } from '@/lib/i18n'
import { t } from '../texts'
import styles from './composer.module.css'

type Choice = Exclude<WhenBusy, 'reject'>

interface BusyChoiceProps {
  agents: readonly Agent[]
  value: WhenBusy
  /** Messages that wait for their turn. */
  queued: number
  onChange: (value: WhenBusy) => void
}

/** What the next message does to the active run. */
export function BusyChoice({ agents, value, queued, onChange }: BusyChoiceProps): ReactNode {
  const providers = useQuery(providersQuery).data ?? []
  const steers = (agent: Agent): boolean => providers.find(({ name }) => name === agent.provider)?.capabilities.steer ?? false
  const canSteer = agents.length > 0 && agents.every(steers)
  const choices: { value: Choice; label: string; hint: string }[] = [
    { value: 'enqueue', label: t.queue, hint: t.answerThisWhenTheCurrentAnswerIs },
    { value: 'interrupt', label: t.interrupt, hint: interruptHint(queued) },
  ]
  if (canSteer) choices.push({ value: 'steer', label: t.steer, hint: t.sendItToTheAgentNowWithout })
  const shown = choices.find((choice) => choice.value === value)?.value ?? 'enqueue'
  return (
    <>
      <Segmented label={t.whileAnAgentAnswers} choices={choices} value={shown} onChange={onChange} />
      {shown === 'interrupt' && (
        <span role="status" className={styles.due}>
          {interruptHint(queued)}
        </span>
      )}
    </>
  )
}

function interruptHint(queued: number): string {
  return queued === 0 ? t.stopsTheCurrentAnswer : plural(queued, t.stopsAndDropsOne, t.stopsAndDrops(queued))
}
