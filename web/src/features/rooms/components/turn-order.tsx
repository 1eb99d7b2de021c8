import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ProblemText } from '@/components/ui/problem-text'
import { Select } from '@/components/ui/select'
import { roomsQuery } from '@/lib/api/queries'
import type { Agent, Room, RoomPolicyChange } from '@/lib/api/types'
import { changePolicy } from '../api/tape'
import { type TurnOrder as Order, turnOrders } from '../model/tape-words'
import { NumberOption } from './number-option'
import { t } from '../texts'
import options from './member-settings.module.css'
import styles from './turn-order.module.css'

/** In which order the agents of a room answer, who moderates or judges, and whether they react to each other. */
export function TurnOrder({ room, members }: { room: Room; members: readonly Agent[] }): ReactNode {
  const queries = useQueryClient()
  const { mutate, error } = useMutation({ mutationFn: (policy: RoomPolicyChange) => changePolicy(room.id, policy), onSuccess: () => queries.invalidateQueries(roomsQuery) })
  const { kind, moderator, judge, debate_rounds, mentions, follow_up, max_rounds, max_messages, attended_minutes, unattended_rounds } = room.policy
  const agents = members.map(({ id, name }) => ({ value: id, label: name }))
  const rules = [
    { value: 'only', label: t.onlyTheMentioned },
    { value: 'first', label: t.theMentionedFirst },
  ]
  return (
    <div className={styles.order}>
      <Select label={t.turnOrder} value={kind} options={turnOrders()} onChange={(value) => mutate(policyFor(value as Order, members))} />
      {kind === 'moderator' && <Select label={t.moderator} value={moderator ?? ''} options={agents} onChange={(id) => mutate({ moderator: id })} />}
      {kind === 'debate' && (
        <>
          <NumberOption label={t.debateRounds} value={debate_rounds} least={1} most={20} onChange={(value) => mutate({ debate_rounds: value })} />
          <Select label={t.judge} value={judge ?? ''} options={[{ value: '', label: t.noJudge }, ...agents]} onChange={(id) => mutate({ judge: id || null })} />
        </>
      )}
      <details className={options.more}>
        <summary>{t.moreOptions}</summary>
        <div>
          <Select label={t.whenAMessageMentionsAgents} value={mentions} options={rules} onChange={(value) => mutate({ mentions: value as typeof mentions })} />
          <label className={options.check}>
            <input type="checkbox" checked={follow_up} onChange={(event) => mutate({ follow_up: event.target.checked })} />
            <span>
              {t.agentsReactToEachOther}
              <small>{t.untilNobodyHasMoreToSay}</small>
            </span>
          </label>
          {(follow_up || kind === 'moderator') && <NumberOption label={t.mostRounds} value={max_rounds} least={0} most={100} onChange={(value) => mutate({ max_rounds: value })} />}
          <NumberOption label={t.mostAnswers} value={max_messages} least={1} most={1000} onChange={(value) => mutate({ max_messages: value })} />
          {follow_up && (
            <>
              <NumberOption label={t.attendedMinutes} hint={t.attendedMinutesHint} value={attended_minutes} least={0} most={1440} onChange={(value) => mutate({ attended_minutes: value })} />
              <NumberOption label={t.unattendedRounds} value={unattended_rounds} least={0} most={100} onChange={(value) => mutate({ unattended_rounds: value })} />
            </>
          )}
        </div>
      </details>
      <ProblemText error={error} />
    </div>
  )
}

/** A moderated room needs a moderator: the first agent, until another one is chosen. */
function policyFor(kind: Order, members: readonly Agent[]): RoomPolicyChange {
  return kind === 'moderator' ? { kind, moderator: members[0]?.id } : { kind }
}
