import type { ReactNode } from 'react'
import { type Column, measured, timeTitle } from '../model/chart'
import type { Bucket, Measure } from '../model/usage-filter'
import styles from './usage-table.module.css'

const words: Record<Measure, string> = { cost: 'Cost', tokens: 'Tokens', runs: 'Runs' }

/** The picture as a table, for those who read rather than look; times without a run are left out. */
export function UsageColumns({ columns, bucket, measure }: { columns: readonly Column[]; bucket: Bucket; measure: Measure }): ReactNode {
  const filled = columns.filter((column) => column.parts.length > 0)
  return (
    <details className={styles.details}>
      <summary>Show as table</summary>
      <table className={styles.table}>
        <caption className="visually-hidden">{words[measure]} over time</caption>
        <thead>
          <tr>
            <th scope="col">{bucket === 'day' ? 'Day' : 'Hour'}</th>
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
  return column.total > 0 ? `${measured(column.total, measure)} + unknown` : 'unknown'
}
