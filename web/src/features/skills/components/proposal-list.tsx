import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import type { Proposal, Skill } from '@/lib/api/types'
import { ProposalCard } from './proposal-card'
import { t } from '../texts'
import styles from './training.module.css'

/** Those that wait for a decision; what became of the others stands in the history. */
export function ProposalList({ skill, proposals }: { skill: Skill; proposals: readonly Proposal[] }): ReactNode {
  const open = proposals.filter((proposal) => proposal.status === 'open')
  if (open.length === 0) return null
  return (
    <Section title={open.length === 1 ? t.aProposedChange : t.proposedChanges(open.length)}>
      <ul className={styles.cards}>
        {open.map((proposal) => (
          <li key={proposal.id}>
            <ProposalCard skill={skill} proposal={proposal} />
          </li>
        ))}
      </ul>
    </Section>
  )
}
