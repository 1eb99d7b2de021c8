import type { ReactNode } from 'react'
import { Fact } from '@/components/ui/fact'
import { count, dollars, duration, tokens } from '@/lib/format'
import type { Metrics } from '../model/execution'
import { t } from '../texts'
import styles from './execution.module.css'

/** What it took. What is not known is not shown as zero. */
export function ExecutionFigures({ metrics: { usage, cost, durationMs } }: { metrics: Metrics }): ReactNode {
  const cached = usage.cache_read_tokens + usage.cache_write_tokens
  return (
    <dl className={styles.figures} aria-label={t.details}>
      <Fact name={t.time}>{durationMs === null ? '–' : duration(durationMs)}</Fact>
      <Fact name={t.tokens}>{count(tokens(usage))}</Fact>
      <Fact name={t.in}>{count(usage.input_tokens)}</Fact>
      <Fact name={t.out}>{count(usage.output_tokens)}</Fact>
      {cached > 0 && <Fact name={t.cache}>{count(cached)}</Fact>}
      <Fact name={t.cost}>{cost === null ? t.unknown : dollars(cost)}</Fact>
    </dl>
  )
}
