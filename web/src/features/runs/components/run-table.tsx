import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { AgentMark } from '@/components/ui/agent-mark'
import type { NamedRun } from '@/lib/api/types'
import { count, dollars, duration, fullTime, shortTime, tokens } from '@/lib/format'
import { millisOf } from '../model/run-time'
import { RunStatus } from './run-status'
import { t } from '../texts'
import styles from './run-table.module.css'

/** `now` advances while a run is active. */
export function RunTable({ runs, now }: { runs: readonly NamedRun[]; now: number }): ReactNode {
  return (
    <table className={styles.table}>
      <caption className="visually-hidden">{t.runsNewestFirst}</caption>
      <thead>
        <tr>
          <th scope="col">{t.run}</th>
          <th scope="col">{t.status}</th>
          <th scope="col" data-room="wide">
            {t.model}
          </th>
          <th scope="col" data-room="wide" data-number>
            {t.tokens}
          </th>
          <th scope="col" data-number>
            {t.cost}
          </th>
          <th scope="col" data-room="some" data-number>
            {t.duration}
          </th>
          <th scope="col" data-room="some" data-number>
            {t.started}
          </th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <Row key={run.id} run={run} now={now} />
        ))}
      </tbody>
    </table>
  )
}

function Row({ run, now }: { run: NamedRun; now: number }): ReactNode {
  const used = tokens(run.usage)
  const millis = millisOf(run, now)
  return (
    <tr>
      <th scope="row">
        <span className={styles.run}>
          <AgentMark id={run.agent_id} name={run.agent_name} />
          <span className={styles.names}>
            <Link to="/runs/$runId" params={{ runId: run.id }} className={styles.link}>
              {run.agent_name}
            </Link>
            {run.question && (
              <span className={styles.question} dir="auto">
                {run.question}
              </span>
            )}
            <span className={styles.room}>{run.room_name}</span>
          </span>
        </span>
      </th>
      <td>
        <RunStatus status={run.status} />
        <time className={styles.small} dateTime={run.created_at}>
          {shortTime(run.created_at)}
        </time>
      </td>
      <td data-room="wide" className={styles.model}>
        {run.model ?? '–'}
      </td>
      <td data-room="wide" data-number>
        {used > 0 ? count(used) : '–'}
      </td>
      <td data-number>{costOf(run)}</td>
      <td data-room="some" data-number>
        {millis === null ? '–' : duration(millis)}
      </td>
      <td data-room="some" data-number>
        <time dateTime={run.created_at} title={fullTime(run.created_at)}>
          {shortTime(run.created_at)}
        </time>
      </td>
    </tr>
  )
}

/** What used nothing cost nothing that is worth a word; what used something at no known price is not free. */
function costOf(run: NamedRun): string {
  if (run.cost !== null && run.cost !== undefined) return dollars(run.cost)
  return tokens(run.usage) > 0 ? t.unknown : '–'
}
