import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import notes from '@/components/ui/note-box.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { queryKeys } from '@/lib/api/query-keys'
import type { Proposal, Skill } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { notify } from '@/lib/notices'
import { acceptProposal, dropProposal, proposalQuery } from '../api/training'
import { TextField } from './found'
import styles from './training.module.css'
import { UnifiedDiff } from './unified-diff'
import { t } from '../texts'

export function ProposalCard({ skill, proposal }: { skill: Skill; proposal: Proposal }): ReactNode {
  const { data, error, refetch } = useQuery(proposalQuery(skill.name, proposal.id))
  const [why, setWhy] = useState<string | null>(null)
  const queries = useQueryClient()
  const isOutdated = proposal.base_version !== skill.version

  const accept = useMutation({
    mutationFn: () => acceptProposal(skill.name, proposal.id),
    onSuccess: async (accepted) => {
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
      notify(t.acceptedAsVersion(accepted.accepted_version ?? ''))
    },
  })
  const drop = useMutation({
    mutationFn: () => dropProposal(skill.name, proposal.id, why ?? ''),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
      notify(t.theProposalWasDropped)
    },
  })
  const failure = accept.error ?? drop.error

  return (
    <div className={styles.card}>
      <p className={styles.meta}>
        {t.forVersion} {proposal.base_version},{' '}
        <time dateTime={proposal.created_at} title={fullTime(proposal.created_at)}>
          {shortTime(proposal.created_at)}
        </time>
        {proposal.note && ` · ${proposal.note}`}
      </p>
      {isOutdated && <p className={notes.warning}>{t.theSkillIsVersionByNowSo(skill.version)}</p>}
      {error && <ProblemNote title={t.couldNotLoadTheProposal} error={error} onRetry={() => void refetch()} />}
      {data && <UnifiedDiff diff={data.diff ?? ''} label={t.proposedChangesOf(fullTime(proposal.created_at))} />}
      {failure && <ProblemNote title={t.thatDidNotWork} error={failure} />}
      {why !== null && <TextField label={t.whyIsItDropped} value={why} maxLength={500} findings={[]} hint={t.keptInTheTrainingHistoryOptional} onChange={setWhy} />}
      <div className={styles.actions}>
        {why === null ? (
          <>
            <Button onClick={() => setWhy('')}>{t.drop}</Button>
            <Button look="primary" isBusy={accept.isPending} disabled={isOutdated} onClick={() => accept.mutate()}>
              {t.acceptAsANewVersion}
            </Button>
          </>
        ) : (
          <>
            <Button onClick={() => setWhy(null)}>{t.back}</Button>
            <Button look="danger" isBusy={drop.isPending} onClick={() => drop.mutate()}>
              {t.dropTheProposal}
            </Button>
          </>
        )}
      </div>
    </div>
  )
}
