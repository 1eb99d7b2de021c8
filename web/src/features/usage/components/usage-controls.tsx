import type { ReactNode } from 'react'
import { Segmented } from '@/components/ui/segmented'
import { type GroupBy, type Measure, type Range, type UsageFilter, boundsOf, dayOf, groups, measures, ranges, withDay } from '../model/usage-filter'
import styles from './usage-page.module.css'

const rangeWords: Record<Range, string> = { day: '24 hours', week: '7 days', month: '30 days', quarter: '90 days' }
const groupWords: Record<GroupBy, string> = { agent: 'By agent', model: 'By model', room: 'By room' }
const measureWords: Record<Measure, string> = { cost: 'Cost', tokens: 'Tokens', runs: 'Runs' }

interface UsageControlsProps {
  filter: UsageFilter
  onChange: (filter: UsageFilter) => void
}

export function UsageControls({ filter, onChange }: UsageControlsProps): ReactNode {
  const isOwn = filter.from !== undefined
  const { from: _from, to: _to, ...rest } = filter
  return (
    <div className={styles.controls}>
      <Segmented
        label="Time"
        choices={[...ranges.map((value) => ({ value, label: rangeWords[value] })), { value: 'own', label: 'Custom range' }]}
        value={isOwn ? 'own' : (filter.range ?? 'week')}
        onChange={(value) => onChange(value === 'own' ? { ...rest, ...currentDays(filter) } : { ...rest, range: value as Range })}
      />
      {isOwn && <Days filter={filter} onChange={onChange} />}
      <Segmented
        label="Figures"
        choices={measures.map((value) => ({ value, label: measureWords[value] }))}
        value={filter.show ?? 'cost'}
        onChange={(show) => onChange({ ...filter, show })}
      />
      <Segmented
        label="Grouped"
        choices={groups.map((value) => ({ value, label: groupWords[value] }))}
        value={filter.by ?? 'agent'}
        onChange={(by) => onChange({ ...filter, by })}
      />
    </div>
  )
}

/** Choosing one's own days begins with those one was looking at. */
function currentDays(filter: UsageFilter): { from: string; to: string } {
  const { from, to } = boundsOf(filter, Date.now())
  return { from: from.slice(0, 10), to: dayOf(Date.parse(to) - 1) }
}

function Days({ filter, onChange }: UsageControlsProps): ReactNode {
  // While a date is being typed it is none.
  const change = (end: 'from' | 'to', chosen: string): void => {
    if (chosen !== '') onChange(withDay(filter, end, chosen))
  }
  return (
    <div className={styles.days}>
      <label>
        From
        <input type="date" value={filter.from} onChange={(event) => change('from', event.target.value)} />
      </label>
      <label>
        to
        <input type="date" value={filter.to} onChange={(event) => change('to', event.target.value)} />
      </label>
    </div>
  )
}
