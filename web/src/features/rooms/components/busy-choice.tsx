import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Segmented } from '@/components/ui/segmented'
import { providersQuery } from '@/lib/api/queries'
import type { Agent, WhenBusy } from '@/lib/api/types'

type Choice = Exclude<WhenBusy, 'reject'>

interface BusyChoiceProps {
  agents: readonly Agent[]
  value: WhenBusy
  onChange: (value: WhenBusy) => void
}

/** What the next message does to the active run. */
export function BusyChoice({ agents, value, onChange }: BusyChoiceProps): ReactNode {
  const providers = useQuery(providersQuery).data ?? []
  const steers = (agent: Agent): boolean => providers.find(({ name }) => name === agent.provider)?.capabilities.steer ?? false
  const canSteer = agents.length > 0 && agents.every(steers)
  const choices: { value: Choice; label: string; hint: string }[] = [
    { value: 'enqueue', label: 'Queue', hint: 'Answer this when the current answer is finished' },
    { value: 'interrupt', label: 'Interrupt', hint: 'Stop the current answer and everything queued, then answer this' },
  ]
  if (canSteer) choices.push({ value: 'steer', label: 'Steer', hint: 'Send it to the agent now, without stopping' })
  const shown = choices.find((choice) => choice.value === value)?.value ?? 'enqueue'
  return <Segmented label="While an agent answers" choices={choices} value={shown} onChange={onChange} />
}
