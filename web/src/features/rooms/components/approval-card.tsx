import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Approval } from '@/feed/state'
import { explain } from '@/lib/api/client'
import { withoutHidden } from '@/lib/hidden-characters'
import { type ApprovalAnswer, answerApproval } from '../api/room-commands'
import styles from './approval-card.module.css'
import { ApprovalChoice } from './approval-choice'
import { QuestionForm } from './question-form'

/** A tool call that waits for a person, or a question to one; afterwards, what was decided. */
export function ApprovalCard({ approval, isLive }: { approval: Approval; isLive: boolean }): ReactNode {
  const answer = useMutation({ mutationFn: (chosen: ApprovalAnswer) => answerApproval(approval.runId, approval.id, chosen) })
  if (approval.decision !== null) return <Decided approval={approval} />
  if (!isLive) return null

  // An accepted answer stays until its event arrives.
  const sent = (answer.isPending || answer.isSuccess) && answer.variables ? answer.variables : null
  const Form = approval.isQuestion ? QuestionForm : ApprovalChoice
  return (
    <section className={styles.card} aria-label={approval.isQuestion ? 'Question' : `Approval for ${withoutHidden(approval.name)}`}>
      <Form approval={approval} sent={sent} onAnswer={answer.mutate} />
      {answer.error && (
        <p className={styles.problem} role="alert">
          {explain(answer.error)}
        </p>
      )}
    </section>
  )
}

const words = { allow: 'Allowed', deny: 'Denied', expired: 'Not answered in time, so denied' }

function Decided({ approval }: { approval: Approval }): ReactNode {
  const changed = approval.changedInput
  if (approval.isQuestion) {
    const said = typeof changed === 'object' && changed && 'answer' in changed ? String(changed.answer) : null
    return <p className={styles.decided}>{approval.decision === 'allow' && said ? `Answered: ${said}` : 'Not answered'}</p>
  }
  return (
    <p className={styles.decided} data-decision={approval.decision}>
      {words[approval.decision ?? 'expired']}
      {changed !== undefined && ', with another input'}
      {approval.isRemembered && ', from now on without asking'}
    </p>
  )
}
