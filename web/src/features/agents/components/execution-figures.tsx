import type { ReactNode } from 'react'
import { Fact } from '@/components/ui/fact'
import { count, dollars, duration, tokens } from '@/lib/format'
import type { Metrics } from '../model/execution'
import styles from './execution.module.css'

/** What it took. What is not known is not shown as zero. */
export function ExecutionFigures({ metrics: { usage, cost, durationMs } }: { metrics: Metrics }): ReactNode {
  const cached = usage.cache_read_tokens + usage.cache_write_tokens
  return (
    <dl className={styles.figures} aria-label="Details">
      <Fact name="Time">{durationMs === null ? '–' : duration(durationMs)}</Fact>
      <Fact name="Tokens">{count(tokens(usage))}</Fact>
      <Fact name="In">{count(usage.input_tokens)}</Fact>
      <Fact name="Out">{count(usage.output_tokens)}</Fact>
      {cached > 0 && <Fact name="Cache">{count(cached)}</Fact>}
      <Fact name="Cost">{cost === null ? 'unknown' : dollars(cost)}</Fact>
    </dl>
  )
}
