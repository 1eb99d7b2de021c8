import type { ReactNode } from 'react'
import type { UsageFigures } from '@/lib/api/types'
import { costText, count, dollars, duration, percent, tokens } from '@/lib/format'
import { runsText, successRate } from '../model/figures'
import { t } from '../texts'
import styles from './usage-page.module.css'

export function UsageTotals({ total }: { total: UsageFigures }): ReactNode {
  const rate = successRate(total)
  return (
    <dl className={styles.totals}>
      <Total name={t.cost} value={total.cost ? dollars(total.cost) : costText(total)} note={total.unpriced > 0 ? t.unknownFor(runsText(total.unpriced)) : null} />
      <Total name={t.tokensTitle} value={count(tokens(total))} note={t.inOut(count(total.input_tokens), count(total.output_tokens))} />
      <Total name={t.fromCache} value={count(total.cache_read_tokens)} note={t.writtenToIt(count(total.cache_write_tokens))} />
      <Total name={t.runsTitle} value={count(total.runs)} note={t.failedStopped(total.failed, total.stopped)} />
      <Total name={t.completedTitle} value={rate === null ? '–' : percent(rate)} note={t.excludingStopped} />
      <Total name={t.runTime} value={duration(total.duration_ms)} note={null} />
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
