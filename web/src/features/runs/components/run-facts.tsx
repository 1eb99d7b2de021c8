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
import { t } from '../texts'

export function RunFacts({ run, agent }: { run: Run; agent: string }): ReactNode {
  const now = useNow(!isEnded(run.status))
  const rooms = useQuery(roomsQuery).data
  const room = rooms?.find(({ id }) => id === run.room_id)?.name
  const millis = millisOf(run, now)
  const used = tokens(run.usage)
  return (
    <dl className={styles.facts}>
      <Fact name={t.status}>
        <RunStatus status={run.status} />
      </Fact>
      <Fact name={t.cost}>
        <span className={styles.figure}>{costOf(run, used)}</span>
        {used > 0 && (run.cost ?? null) === null && <small>{t.thePriceOfThisModelIsUnknown}</small>}
      </Fact>
      <Fact name={t.tokens}>
        <span className={styles.figure}>{used > 0 ? count(used) : '–'}</span>
        {used > 0 && <small>{breakdown(run)}</small>}
      </Fact>
      <Fact name={isEnded(run.status) ? t.time : t.timeSoFar}>
        <span className={styles.figure}>{millis === null ? '–' : duration(millis)}</span>
      </Fact>
      <Fact name={t.agent}>
        <Link to="/runs" search={{ agent: run.agent_id }} title={t.allRunsOfThisAgent}>
          {agent}
        </Link>
      </Fact>
      <Fact name={t.room}>
        <Link to="/runs" search={{ room: run.room_id }} title={t.allRunsOfThisRoom}>
          {room ?? (rooms ? t.deletedRoom : '…')}
        </Link>
      </Fact>
      <Fact name={t.model}>{run.model ?? (isEnded(run.status) ? t.unknown : t.unknownYet)}</Fact>
      <Fact name={t.asked}>{fullTime(run.created_at)}</Fact>
    </dl>
  )
}

function costOf(run: Run, used: number): string {
  if (run.cost !== null && run.cost !== undefined) return dollars(run.cost)
  return used > 0 ? t.unknown : '–'
}

function breakdown({ usage }: Run): string {
  return [
    t.in(count(usage.input_tokens)),
    t.out(count(usage.output_tokens)),
    usage.cache_read_tokens > 0 && t.fromCache(count(usage.cache_read_tokens)),
    usage.cache_write_tokens > 0 && t.toCache(count(usage.cache_write_tokens)),
  ]
    .filter(Boolean)
    .join(', ')
}
