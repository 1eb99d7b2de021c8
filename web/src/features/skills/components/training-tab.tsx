import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ProblemNote } from '@/components/ui/problem-note'
import { Section } from '@/components/ui/section'
import type { Skill } from '@/lib/api/types'
import { trainingQuery } from '../api/training'
import { ProposalList } from './proposal-list'
import { RoundList } from './round-list'
import { ScoreChart } from './score-chart'
import { TrainingRooms } from './training-rooms'
import { t } from '../texts'
import styles from './training.module.css'

export function TrainingTab({ skill }: { skill: Skill }): ReactNode {
  const { data: training, error, refetch } = useQuery(trainingQuery(skill.name))
  if (error && !training) return <ProblemNote title={t.couldNotLoadTheTraining} error={error} onRetry={() => void refetch()} />
  if (!training) return null
  return (
    <div className={styles.tab}>
      <Section title={t.experience} lead={t.basedOnYourRatingsRecentOnesCount}>
        <ScoreChart rounds={training.rounds} />
      </Section>
      <ProposalList skill={skill} proposals={training.proposals} />
      <TrainingRooms skill={skill} training={training} />
      <RoundList rounds={training.rounds} />
    </div>
  )
}
