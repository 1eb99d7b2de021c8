import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { UsageReport, UsageSeries } from '@/lib/api/types'
import { costText, count, duration, percent, tokens } from '@/lib/format'
import { ranked } from '../model/chart'
import { successRate } from '../model/figures'
import type { GroupBy, Measure } from '../model/usage-filter'
import { t } from '../texts'
import chart from './usage-chart.module.css'
import styles from './usage-table.module.css'

interface UsageTableProps {
  report: UsageReport
  hues: ReadonlyMap<string, number>
  by: GroupBy
  measure: Measure
}

const heads: Record<GroupBy, string> = { get agent() { return t.agent }, get model() { return t.model }, get room() { return t.room } }

/** Also the key to the colours of the chart. */
export function UsageTable({ report, hues, by, measure }: UsageTableProps): ReactNode {
  return (
    <div className={styles.series}>
      <table className={styles.table}>
        <caption className="visually-hidden">{t.usageBy(by)}</caption>
        <thead>
          <tr>
            <th scope="col">{heads[by]}</th>
            <th scope="col" data-number>
              {t.cost}
            </th>
            <th scope="col" data-number>
              {t.tokensTitle}
            </th>
            <th scope="col" data-number>
              {t.runsTitle}
            </th>
            <th scope="col" data-number data-room="some">
              {t.time}
            </th>
          </tr>
        </thead>
        <tbody>
          {ranked(report, measure).map((series) => (
            <Row key={series.key} series={series} hue={hues.get(series.key) ?? 0} by={by} />
          ))}
        </tbody>
      </table>
      {report.left_out > 0 && <p className={styles.more}>{t.moreAreInTheTotalsOnly(report.left_out)}</p>}
    </div>
  )
}

function Row({ series, hue, by }: { series: UsageSeries; hue: number; by: GroupBy }): ReactNode {
  const { total, name, key } = series
  const rate = successRate(total)
  return (
    <tr>
      <th scope="row">
        <span className={styles.name}>
          <span className={chart.swatch} data-hue={hue} aria-hidden />
          {by === 'model' ? (
            name
          ) : (
            <Link to="/runs" search={{ [by]: key }} title={t.itsRuns}>
              {name}
            </Link>
          )}
        </span>
      </th>
      <td data-number>{costText(total)}</td>
      <td data-number>{count(tokens(total))}</td>
      <td data-number>
        {count(total.runs)}
        {rate !== null && rate < 1 && <small>{t.completed(percent(rate))}</small>}
      </td>
      <td data-number data-room="some">
        {duration(total.duration_ms)}
      </td>
    </tr>
  )
}
