import { Fragment, type ReactNode, memo } from 'react'
import { Markdown } from '@/components/ui/markdown'
import type { Approval, Message, Part } from '@/feed/state'
import { ApprovalCard } from './approval-card'
import styles from './answer-parts.module.css'
import { Thinking } from './thinking'
import { ToolCard } from './tool-card'

/** Thinking, tool calls and text, in order. */
export function AnswerParts({ message, agent, approvals }: { message: Message; agent: string; approvals: readonly Approval[] }): ReactNode {
  const { parts } = message
  const isLive = message.status === 'streaming'
  const calls = new Set(parts.map((part) => (part.type === 'tool' ? part.tool_use_id : null)))
  const loose = approvals.filter((approval) => approval.toolUseId === null || !calls.has(approval.toolUseId))
  const cards = (at: number): ReactNode[] =>
    loose.filter((approval) => Math.min(approval.partsBefore, parts.length) === at).map((approval) => <ApprovalCard key={approval.id} approval={approval} agent={agent} isLive={isLive} />)
  return (
    <div className={styles.parts}>
      {parts.map((part, index) => (
        <Fragment key={keyOf(part, index)}>
          {cards(index)}
          <PartView
            part={part}
            agent={agent}
            isLast={isLive && index === parts.length - 1}
            isLive={isLive}
            approval={part.type === 'tool' ? approvals.findLast((approval) => approval.toolUseId === part.tool_use_id) : undefined}
          />
        </Fragment>
      ))}
      {cards(parts.length)}
    </div>
  )
}

/** A tool keeps its card, and whether it is open, when a part before it is taken back. */
function keyOf(part: Part, index: number): string {
  return part.type === 'tool' ? part.tool_use_id : `${index} ${part.type} ${part.item ?? ''}`
}

interface PartViewProps {
  part: Part
  agent: string
  isLast: boolean
  isLive: boolean
  approval: Approval | undefined
}

const PartView = memo(function PartView({ part, agent, isLast, isLive, approval }: PartViewProps): ReactNode {
  if (part.type === 'tool') {
    return (
      <>
        <ToolCard call={part} isLive={isLive} isWaiting={approval?.decision === null} editedInput={approval?.decision === 'allow' && !approval.isQuestion ? approval.changedInput : undefined} />
        {approval && <ApprovalCard approval={approval} agent={agent} isLive={isLive} />}
      </>
    )
  }
  return part.type === 'text' ? <Markdown text={part.text} isGrowing={isLast} /> : <Thinking text={part.text} isLive={isLast} />
})
