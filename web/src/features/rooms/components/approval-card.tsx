import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { DiffView } from '@/components/ui/diff-view'
import type { Approval } from '@/feed/state'
import { explain } from '@/lib/api/client'
import { withoutHidden } from '@/lib/hidden-characters'
import { type ApprovalAnswer, answerApproval } from '../api/room-commands'
import { answersIn } from '../model/questions'
import styles from './approval-card.module.css'
import { ApprovalChoice } from './approval-choice'
import { QuestionForm } from './question-form'
import { t } from '../texts'

/** A tool call that waits for a person, or a question to one; afterwards, what was decided. */
export function ApprovalCard({ approval, agent, isLive }: { approval: Approval; agent: string; isLive: boolean }): ReactNode {
  const answer = useMutation({ mutationFn: (chosen: ApprovalAnswer) => answerApproval(approval.runId, approval.id, chosen) })
  if (approval.decision !== null) return <Decided approval={approval} />
  if (!isLive) return null

  // An accepted answer stays until its event arrives.
  const sent = (answer.isPending || answer.isSuccess) && answer.variables ? answer.variables : null
  const Form = approval.isQuestion ? QuestionForm : ApprovalChoice
  return (
    <section className={styles.card} aria-label={approval.isQuestion ? t.question : t.approvalFor(withoutHidden(approval.name))}>
      <Form approval={approval} agent={agent} sent={sent} onAnswer={answer.mutate} />
      {answer.error && (
        <p className={styles.problem} role="alert">
          {explain(answer.error)}
        </p>
      )}
    </section>
  )
}

const words = { get allow() { return t.allowed }, get deny() { return t.denied }, get expired() { return t.timedOutDenied } }

function Decided({ approval }: { approval: Approval }): ReactNode {
  const { decision, changedInput, isRemembered } = approval
  if (approval.isQuestion) {
    const said = answersIn(changedInput)
    const missing = decision === 'expired' ? t.timedOut : t.skipped
    return (
      <p className={styles.decided} dir="auto">
        {decision === 'allow' && said !== '' ? t.answered(said) : missing}
      </p>
    )
  }
  if (decision === 'allow' && changedInput !== undefined) return <AllowedEdited before={approval.input} after={changedInput} isRemembered={isRemembered} />
  return (
    <p className={styles.decided} data-decision={decision}>
      {decision === 'allow' && isRemembered ? t.alwaysAllowedInThisRoom : words[decision ?? 'expired']}
    </p>
  )
}

/** What ran is what the person wrote, so that is shown, with what it replaced. */
function AllowedEdited({ before, after, isRemembered }: { before: unknown; after: unknown; isRemembered: boolean }): ReactNode {
  return (
    <div className={styles.decided} data-decision="allow">
      <p>{isRemembered ? t.alwaysAllowedInThisRoomWithEdited : t.allowedWithEditedInput}</p>
      <DiffView before={lines(before)} after={lines(after)} />
    </div>
  )
}

function lines(input: unknown): string {
  return typeof input === 'string' ? input : (JSON.stringify(input, null, 2) ?? 'null')
}
