import { useMutation, useQueryClient } from '@tanstack/react-query'
import { GitPullRequestArrow, Star } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Markdown } from '@/components/ui/markdown'
import { ProblemNote } from '@/components/ui/problem-note'
import type { Message, Skill, Training } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { propose, trainingQuery } from '../api/training'
import { holdsProposal } from '../model/score'
import { RateForm } from './rate-form'
import { t } from '../texts'
import styles from './training.module.css'

interface TrainingAnswerProps {
  skill: Skill
  message: Message
  training: Training
}

/** An answer of the agent, what it was rated, and what it proposed. */
export function TrainingAnswer({ skill, message, training }: TrainingAnswerProps): ReactNode {
  const [isRating, setIsRating] = useState(false)
  const queries = useQueryClient()
  const ratings = training.rounds.filter((round) => round.kind === 'rating' && round.message_id === message.id)
  const proposal = training.proposals.find((one) => one.message_id === message.id)
  const isGrowing = message.status === 'streaming'
  const take = useMutation({
    mutationFn: () => propose(skill.name, message.id),
    onSuccess: async () => {
      await queries.invalidateQueries(trainingQuery(skill.name))
      notify(t.theProposalIsAboveAsADiff)
    },
  })

  return (
    <article className={styles.card} aria-label={t.answerOf(message.author.name)}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className={styles.answer} tabIndex={0} role="group" aria-label={t.itsText}>
        {message.text === '' ? <p className={styles.meta}>{isGrowing ? t.working : t.noText}</p> : <Markdown text={message.text} isGrowing={isGrowing} />}
      </div>
      {take.error && <ProblemNote title={t.couldNotCreateAProposal} error={take.error} />}
      {isRating ? (
        <RateForm skill={skill} messageId={message.id} onClose={() => setIsRating(false)} />
      ) : (
        <div className={styles.actions}>
          {ratings.length > 0 && <p className={styles.rated}>{t.ratedOf5With(ratings.map((round) => round.score).join(', '))}</p>}
          {proposal && <p className={styles.rated}>{t.itsProposalIs(proposal.status)}</p>}
          {!proposal && holdsProposal(message.text) && (
            <Button size="small" isBusy={take.isPending} disabled={isGrowing} onClick={() => take.mutate()}>
              <GitPullRequestArrow size={14} aria-hidden />
              {t.lookAtItsProposal}
            </Button>
          )}
          <Button size="small" disabled={isGrowing} onClick={() => setIsRating(true)}>
            <Star size={14} aria-hidden />
            {ratings.length > 0 ? t.rateAgain : t.rate}
          </Button>
        </div>
      )}
    </article>
  )
}
