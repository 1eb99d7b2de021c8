import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { VisibleText } from '@/components/ui/visible-text'
import type { Approval } from '@/feed/state'
import { useCommands } from '@/lib/commands'
import { countHidden, escapeHidden, withoutHidden } from '@/lib/hidden-characters'
import type { ApprovalAnswer } from '../api/room-commands'
import styles from './approval-card.module.css'
import { TimeLeft } from './time-left'
import { ToolInput } from './tool-input'
import { RichText } from '@/components/ui/rich-text'
import { t } from '../texts'

export interface AnswerFormProps {
  approval: Approval
  /** The name of the agent that asks. */
  agent: string
  /** What was chosen and is on its way. */
  sent: ApprovalAnswer | null
  onAnswer: (answer: ApprovalAnswer) => void
}

export function ApprovalChoice({ approval, agent, sent, onAnswer }: AnswerFormProps): ReactNode {
  const [edited, setEdited] = useState<string | null>(null)
  const changed = edited === null ? undefined : parsed(edited)
  const isBroken = edited !== null && changed === undefined
  const allow: ApprovalAnswer = changed === undefined ? { decision: 'allow' } : { decision: 'allow', input: changed.value }

  const name = withoutHidden(approval.name)
  const answer = (chosen: ApprovalAnswer) => (): void => {
    if (sent === null && edited === null) onAnswer(chosen)
  }
  useCommands([
    { id: `allow-${approval.id}`, title: t.allow(name), group: 'room', keys: 'y', run: answer({ decision: 'allow' }) },
    { id: `deny-${approval.id}`, title: t.deny(name), group: 'room', keys: 'n', run: answer({ decision: 'deny' }) },
    { id: `always-${approval.id}`, title: t.alwaysAllowThisInputOf(name), group: 'room', keys: 'a', run: answer({ decision: 'allow', remember: 'exact' }) },
  ])

  return (
    <>
      <div className={styles.title}>
        <strong>
          <RichText text={t.allowAgentToRun} parts={{ agent, tool: <VisibleText text={approval.name} /> }} />
        </strong>
        <TimeLeft until={approval.expiresAt} className={styles.left} />
      </div>
      <HiddenWarning count={countHidden([approval.name, approval.input])} />
      <div className={styles.input}>
        {edited === null ? (
          <ToolInput input={approval.input} />
        ) : (
          <textarea
            className={styles.edit}
            aria-label={t.inputAsJson}
            aria-invalid={isBroken}
            value={edited}
            spellCheck={false}
            onChange={(event) => setEdited(event.target.value)}
          />
        )}
      </div>
      <div className={styles.actions}>
        <Button look="primary" disabled={isBroken || sent !== null} isBusy={sent?.decision === 'allow' && !sent.remember} onClick={() => onAnswer(allow)}>
          {edited === null ? t.allowTitle : t.allowEdited}
        </Button>
        <Button disabled={sent !== null} isBusy={sent?.decision === 'deny'} onClick={() => onAnswer({ decision: 'deny' })}>
          {t.denyTitle}
        </Button>
        <Button disabled={isBroken || sent !== null} isBusy={sent?.remember === 'exact'} onClick={() => onAnswer({ ...allow, remember: 'exact' })}>
          {t.alwaysThisInput}
        </Button>
        {approval.pattern !== null && edited === null && (
          <Button disabled={sent !== null} isBusy={sent?.remember === 'pattern'} onClick={() => onAnswer({ ...allow, remember: 'pattern' })}>
            {t.always} <VisibleText text={approval.pattern} />
          </Button>
        )}
        <Button look="danger" disabled={isBroken || sent !== null} isBusy={sent?.remember === 'tool'} onClick={() => onAnswer({ ...allow, remember: 'tool' })}>
          <RichText text={t.alwaysAnyCall} parts={{ tool: <VisibleText text={approval.name} /> }} />
        </Button>
        <Button look="quiet" onClick={() => setEdited(edited === null ? escapeHidden(JSON.stringify(approval.input, null, 2)) : null)}>
          {edited === null ? t.edit : t.discardEdit}
        </Button>
      </div>
      {isBroken && <p className={styles.problem}>{t.notValidJsonYet}</p>}
    </>
  )
}

function HiddenWarning({ count }: { count: number }): ReactNode {
  if (count === 0) return null
  return (
    <p className={styles.warning} role="note">{t.shownAsU(count === 1 ? t.oneCharacterHereIsInvisibleOrDeceptive : t.charactersHereAreInvisibleOrDeceptiveThey(count))}</p>
  )
}

function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}
