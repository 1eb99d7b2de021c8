import type { ReactNode } from 'react'
import type { UsageFigures } from '@/lib/api/types'
import { costText, count, dollars, duration, percent, tokens } from '@/lib/format'
import { runsText, successRate } from '../model/figures'
import styles from './usage-page.module.css'

export function UsageTotals({ total }: { total: UsageFigures }): ReactNode {
  const rate = successRate(total)
  return (
    <dl className={styles.totals}>
      <Total name="Cost" value={total.cost ? dollars(total.cost) : costText(total)} note={total.unpriced > 0 ? `+ unknown for ${runsText(total.unpriced)}` : null} />
      <Total name="Tokens" value={count(tokens(total))} note={`${count(total.input_tokens)} in, ${count(total.output_tokens)} out`} />
      <Total name="From cache" value={count(total.cache_read_tokens)} note={`${count(total.cache_write_tokens)} written to it`} />
      <Total name="Runs" value={count(total.runs)} note={`${total.failed} failed, ${total.stopped} stopped`} />
      <Total name="Completed" value={rate === null ? '–' : percent(rate)} note="excluding stopped" />
      <Total name="Run time" value={duration(total.duration_ms)} note={null} />
    </dl>
  )
}

function Total({ name, value, note }: { name: string; value: string; note: string | null }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value}
        {note && <small>{note}</small>}
      </dd>
    </div>
  )
}
