import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Select } from '@/components/ui/select'
import { roomsQuery } from '@/lib/api/queries'
import type { Agent, Room, RoomPolicyChange } from '@/lib/api/types'
import { ProblemText } from '@/components/ui/problem-text'
import { changePolicy } from '../api/tape'
import { type TurnOrder as Order, turnOrders } from '../model/tape-words'
import { t } from '../texts'
import styles from './turn-order.module.css'

/** In which order the agents of a room answer, and who moderates or judges. */
export function TurnOrder({ room, members }: { room: Room; members: readonly Agent[] }): ReactNode {
  const queries = useQueryClient()
  const change = useMutation({ mutationFn: (policy: RoomPolicyChange) => changePolicy(room.id, policy), onSuccess: () => queries.invalidateQueries(roomsQuery) })
  const { kind, moderator, judge } = room.policy
  const agents = members.map(({ id, name }) => ({ value: id, label: name }))
  return (
    <div className={styles.order}>
      <Select label={t.turnOrder} value={kind} options={turnOrders()} onChange={(value) => change.mutate(policyFor(value as Order, members))} />
      {kind === 'moderator' && <Select label={t.moderator} value={moderator ?? ''} options={agents} onChange={(id) => change.mutate({ moderator: id })} />}
      {kind === 'debate' && (
        <Select label={t.judge} value={judge ?? ''} options={[{ value: '', label: t.noJudge }, ...agents]} onChange={(id) => change.mutate({ judge: id || null })} />
      )}
      <ProblemText error={change.error} />
    </div>
  )
}

/** A moderated room needs a moderator: the first agent, until another one is chosen. */
function policyFor(kind: Order, members: readonly Agent[]): RoomPolicyChange {
  return kind === 'moderator' ? { kind, moderator: members[0]?.id } : { kind }
}
