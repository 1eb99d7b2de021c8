import type { UsageFigures } from '@/lib/api/types'
import { costText, count, tokens } from '@/lib/format'
import type { Measure } from './usage-filter'
import { t } from '../texts'

type Counts = Pick<UsageFigures, 'runs' | 'input_tokens' | 'output_tokens' | 'cache_read_tokens' | 'cache_write_tokens' | 'cost' | 'unpriced'>

/** The height in the chart. An unknown price has no height; the text says that it is unknown. */
export function valueOf(figures: Counts, measure: Measure): number {
  if (measure === 'tokens') return tokens(figures)
  return measure === 'runs' ? figures.runs : (figures.cost ?? 0)
}

export function valueText(figures: Counts, measure: Measure): string {
  if (measure === 'cost') return costText(figures)
  return measure === 'tokens' ? t.tokens(count(tokens(figures))) : runsText(figures.runs)
}

export function runsText(runs: number): string {
  return runs === 1 ? t.n1Run : t.runs(runs)
}

/** Of those that came to an end; nothing where none did. */
export function successRate({ completed, failed }: Pick<UsageFigures, 'completed' | 'failed'>): number | null {
  const ended = completed + failed
  return ended === 0 ? null : completed / ended
}
