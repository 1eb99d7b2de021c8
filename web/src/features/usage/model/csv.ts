import type { UsageReport } from '@/lib/api/types'

const columns = [
  'runs',
  'completed',
  'failed',
  'stopped',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'duration_ms',
  'unpriced',
] as const

/** One line for each series and time. An unknown cost is empty, which no program takes for a sum. */
export function toCsv(report: UsageReport, by: string): string {
  const head = ['time', by, `${by}_key`, ...columns, 'cost_usd']
  const lines = report.series.flatMap(({ key, name, points }) =>
    points.map((point) => [point.at, name, key, ...columns.map((column) => String(point[column])), point.cost === null || point.cost === undefined ? '' : String(point.cost)]),
  )
  return [head, ...lines].map((line) => line.map(cell).join(',')).join('\r\n') + '\r\n'
}

/** Quoted where it must be. A name is anyone's text: a spreadsheet must not take it for a formula. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?(e-?\d+)?$/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
