import type { ReactNode } from 'react'
import { Segmented } from '@/components/ui/segmented'
import { type GroupBy, type Measure, type Range, type UsageFilter, boundsOf, dayOf, groups, measures, ranges, withDay } from '../model/usage-filter'
import { t } from '../texts'
import styles from './usage-page.module.css'

const rangeWords: Record<Range, string> = { get day() { return t.n24Hours }, get week() { return t.n7Days }, get month() { return t.n30Days }, get quarter() { return t.n90Days } }
const groupWords: Record<GroupBy, string> = { get agent() { return t.byAgent }, get model() { return t.byModel }, get room() { return t.byRoom } }
const measureWords: Record<Measure, string> = { get cost() { return t.cost }, get tokens() { return t.tokensTitle }, get runs() { return t.runsTitle } }

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
        label={t.time}
        choices={[...ranges.map((value) => ({ value, label: rangeWords[value] })), { value: 'own', label: t.customRange }]}
        value={isOwn ? 'own' : (filter.range ?? 'week')}
        onChange={(value) => onChange(value === 'own' ? { ...rest, ...currentDays(filter) } : { ...rest, range: value as Range })}
      />
      {isOwn && <Days filter={filter} onChange={onChange} />}
      <Segmented
        label={t.figures}
        choices={measures.map((value) => ({ value, label: measureWords[value] }))}
        value={filter.show ?? 'cost'}
        onChange={(show) => onChange({ ...filter, show })}
      />
      <Segmented
        label={t.grouped}
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
        {t.from}
        <input type="date" value={filter.from} onChange={(event) => change('from', event.target.value)} />
      </label>
      <label>
        {t.to}
        <input type="date" value={filter.to} onChange={(event) => change('to', event.target.value)} />
      </label>
    </div>
  )
}
