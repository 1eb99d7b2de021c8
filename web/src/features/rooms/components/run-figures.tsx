import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { RunState } from '@/feed/state'
import { count, dollars, duration, tokens } from '@/lib/format'
import styles from './run-figures.module.css'

/** Time, tokens and cost of one answer. What is not known is not shown as zero. */
export function RunFigures({ run }: { run: RunState }): ReactNode {
  const used = tokens(run.usage)
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = run.usage
  const breakdown = [
    `${count(input_tokens)} in`,
    `${count(output_tokens)} out`,
    cache_read_tokens > 0 && `${count(cache_read_tokens)} from cache`,
    cache_write_tokens > 0 && `${count(cache_write_tokens)} to cache`,
  ].filter(Boolean)
  if (run.durationMs === null && used === 0) return null
  return (
    <dl className={styles.figures}>
      {run.durationMs !== null && <Figure name="Time" value={duration(run.durationMs)} />}
      {used > 0 && <Figure name="Tokens" value={`${count(used)} tokens`} hint={breakdown.join(', ')} />}
      {used > 0 && <Figure name="Cost" value={run.cost === null ? 'cost unknown' : dollars(run.cost)} />}
      {run.model && <Figure name="Model" value={run.model} />}
      <div>
        <dt className="visually-hidden">Its run</dt>
        <dd>
          <Link to="/runs/$runId" params={{ runId: run.id }}>
            Details
          </Link>
        </dd>
      </div>
    </dl>
  )
}

function Figure({ name, value, hint }: { name: string; value: string; hint?: string }): ReactNode {
  return (
    <div title={hint}>
      <dt className="visually-hidden">{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}
