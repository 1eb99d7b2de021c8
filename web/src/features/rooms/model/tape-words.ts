import type { Room, Tape } from '@/lib/api/types'
import { t } from '../texts'

type Cell = Tape['cells'][number]

export function cellStatus(status: Cell['status']): string {
  return { running: t.answeringNow, queued: t.queued, planned: t.planned }[status]
}

/** Why it is their turn. */
export function cellReason(reason: Cell['reason']): string {
  return {
    joining_order: t.inOrder,
    priority: t.byPriority,
    mentioned: t.mentioned,
    interrupts_every_turn: t.reactsToEverything,
    all_at_once: t.allAtOnce,
    round_robin: t.takingTurns,
    moderator: t.moderates,
    named_by_moderator: t.namedByModerator,
    debate: t.debates,
    judge: t.judges,
    follow_up: t.followsUp,
    final_response: t.hasTheLastWord,
    inserted: t.inserted,
  }[reason]
}

export type TurnOrder = Room['policy']['kind']

export function turnOrders(): { value: TurnOrder; label: string }[] {
  return [
    { value: 'in_order', label: t.orderOneAfterAnother },
    { value: 'everyone', label: t.orderEveryone },
    { value: 'concurrent', label: t.orderAllAtOnce },
    { value: 'mention_only', label: t.orderMentionOnly },
    { value: 'round_robin', label: t.orderTakingTurns },
    { value: 'moderator', label: t.orderModerator },
    { value: 'debate', label: t.orderDebate },
  ]
}
