import type { ReactNode } from 'react'
import type { Agent } from '@/lib/api/types'
import { t } from '../texts'
import styles from './recipient.module.css'

interface RecipientProps {
  agents: readonly Agent[]
  value: string | null
  onChange: (agentId: string | null) => void
}

/** Who answers the next message: everyone, or one agent, as if it were mentioned. */
export function Recipient({ agents, value, onChange }: RecipientProps): ReactNode {
  return (
    <select className={styles.recipient} aria-label={t.whoAnswers} value={value ?? ''} onChange={(event) => onChange(event.target.value || null)}>
      <option value="">{t.everyone}</option>
      {agents.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  )
}
