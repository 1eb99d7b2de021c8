import type { ReactNode } from 'react'
import { type Column, measured, timeTitle } from '../model/chart'
import type { Bucket, Measure } from '../model/usage-filter'
import { t } from '../texts'
import styles from './usage-table.module.css'

const words: Record<Measure, string> = { get cost() { return t.cost }, get tokens() { return t.tokensTitle }, get runs() { return t.runsTitle } }

/** The picture as a table, for those who read rather than look; times without a run are left out. */
export function UsageColumns({ columns, bucket, measure }: { columns: readonly Column[]; bucket: Bucket; measure: Measure }): ReactNode {
  const filled = columns.filter((column) => column.parts.length > 0)
  return (
    <details className={styles.details}>
      <summary>{t.showAsTable}</summary>
      <table className={styles.table}>
        <caption className="visually-hidden">{t.overTime(words[measure])}</caption>
        <thead>
          <tr>
            <th scope="col">{bucket === 'day' ? t.day : t.hour}</th>
            <th scope="col" data-number>
              {words[measure]}
            </th>
          </tr>
        </thead>
        <tbody>
          {filled.map((column) => (
            <tr key={column.at}>
              <th scope="row">{timeTitle(column.at, bucket)}</th>
              <td data-number>{textOf(column, measure)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  )
}

function textOf(column: Column, measure: Measure): string {
  if (!column.hasUnknown) return measured(column.total, measure)
  return column.total > 0 ? t.unknown(measured(column.total, measure)) : t.unknownWord
}
