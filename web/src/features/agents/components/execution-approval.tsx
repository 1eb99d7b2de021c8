import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { VisibleText } from '@/components/ui/visible-text'
import { withoutHidden } from '@/lib/hidden-characters'
import type { Approval } from '../model/execution'
import { RichText } from '@/components/ui/rich-text'
import { t } from '../texts'
import styles from './execution.module.css'

interface ExecutionApprovalProps {
  approval: Approval
  roomId: string | null
  isBusy: boolean
  onAnswer: (approvalId: string, decision: 'allow' | 'deny') => void
  onClose: () => void
}

/** Those of Greenroom, Claude Code and Codex that ask a person something. */
const questionTools = ['ask_user', 'AskUserQuestion', 'request_user_input']

/** A yes or a no. What wants more words than that is answered in the room. */
export function ExecutionApproval({ approval, roomId, isBusy, onAnswer, onClose }: ExecutionApprovalProps): ReactNode {
  const isQuestion = questionTools.includes(approval.name)
  const answer = (decision: 'allow' | 'deny') => (): void => onAnswer(approval.id, decision)
  return (
    <section className={styles.approval} aria-label={t.mayItUse(withoutHidden(approval.name))}>
      <strong>
        {isQuestion ? (
          t.itHasAQuestion
        ) : (
          <>
            <RichText text={t.mayItUseTool} parts={{ tool: <VisibleText text={approval.name} /> }} />
          </>
        )}
      </strong>
      <pre>
        <VisibleText text={typeof approval.input === 'string' ? approval.input : (JSON.stringify(approval.input, null, 2) ?? '')} />
      </pre>
      <div className={styles.answers}>
        {isQuestion && roomId ? (
          <Link to="/rooms/$roomId" params={{ roomId }} onClick={onClose}>
            {t.answerInItsRoom}
          </Link>
        ) : (
          <>
            <Button size="small" look="primary" isBusy={isBusy} onClick={answer('allow')}>
              {t.allow}
            </Button>
            <Button size="small" isBusy={isBusy} onClick={answer('deny')}>
              {t.deny}
            </Button>
          </>
        )}
      </div>
    </section>
  )
}
