import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Fact } from '@/components/ui/fact'
import { roomsQuery } from '@/lib/api/queries'
import type { Run } from '@/lib/api/types'
import { count, dollars, duration, fullTime, tokens } from '@/lib/format'
import { useNow } from '@/lib/use-now'
import { isEnded } from '../model/run-filter'
import { millisOf } from '../model/run-time'
import styles from './run-page.module.css'
import { RunStatus } from './run-status'

export function RunFacts({ run, agent }: { run: Run; agent: string }): ReactNode {
  const now = useNow(!isEnded(run.status))
  const rooms = useQuery(roomsQuery).data
  const room = rooms?.find(({ id }) => id === run.room_id)?.name
  const millis = millisOf(run, now)
  const used = tokens(run.usage)
  return (
    <dl className={styles.facts}>
      <Fact name="Status">
        <RunStatus status={run.status} />
      </Fact>
      <Fact name="Cost">
        <span className={styles.figure}>{costOf(run, used)}</span>
        {used > 0 && (run.cost ?? null) === null && <small>The price of this model is unknown.</small>}
      </Fact>
      <Fact name="Tokens">
        <span className={styles.figure}>{used > 0 ? count(used) : '–'}</span>
        {used > 0 && <small>{breakdown(run)}</small>}
      </Fact>
      <Fact name={isEnded(run.status) ? 'Time' : 'Time so far'}>
        <span className={styles.figure}>{millis === null ? '–' : duration(millis)}</span>
      </Fact>
      <Fact name="Agent">
        <Link to="/runs" search={{ agent: run.agent_id }} title="All runs of this agent">
          {agent}
        </Link>
      </Fact>
      <Fact name="Room">
        <Link to="/runs" search={{ room: run.room_id }} title="All runs of this room">
          {room ?? (rooms ? '(deleted room)' : '…')}
        </Link>
      </Fact>
      <Fact name="Model">{run.model ?? (isEnded(run.status) ? 'unknown' : 'unknown yet')}</Fact>
      <Fact name="Asked">{fullTime(run.created_at)}</Fact>
    </dl>
  )
}

function costOf(run: Run, used: number): string {
  if (run.cost !== null && run.cost !== undefined) return dollars(run.cost)
  return used > 0 ? 'unknown' : '–'
}

function breakdown({ usage }: Run): string {
  return [
    `${count(usage.input_tokens)} in`,
    `${count(usage.output_tokens)} out`,
    usage.cache_read_tokens > 0 && `${count(usage.cache_read_tokens)} from cache`,
    usage.cache_write_tokens > 0 && `${count(usage.cache_write_tokens)} to cache`,
  ]
    .filter(Boolean)
    .join(', ')
}
