import type { ReactNode } from 'react'
import { count, dollars, duration, tokens } from '@/lib/format'
import type { Metrics } from '../model/execution'
import styles from './execution.module.css'

/** What it took. What is not known is not shown as zero. */
export function ExecutionFigures({ metrics: { usage, cost, durationMs } }: { metrics: Metrics }): ReactNode {
  const cached = usage.cache_read_tokens + usage.cache_write_tokens
  return (
    <dl className={styles.figures} aria-label="What it took">
      <Figure name="Time" value={durationMs === null ? '–' : duration(durationMs)} />
      <Figure name="Tokens" value={count(tokens(usage))} />
      <Figure name="In" value={count(usage.input_tokens)} />
      <Figure name="Out" value={count(usage.output_tokens)} />
      {cached > 0 && <Figure name="Cache" value={count(cached)} />}
      <Figure name="Cost" value={cost === null ? 'unknown' : dollars(cost)} />
    </dl>
  )
}

function Figure({ name, value }: { name: string; value: string }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}
