import { useQuery } from '@tanstack/react-query'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Select } from '@/components/ui/select'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import { type RunFilter, type Since, isNarrowed, spans, statuses, withFilter } from '../model/run-filter'
import { sinceWords, statusWords } from '../model/run-words'
import { t } from '../texts'
import styles from './runs-page.module.css'

interface RunFiltersProps {
  filter: RunFilter
  onChange: (filter: RunFilter) => void
}

export function RunFilters({ filter, onChange }: RunFiltersProps): ReactNode {
  const agents = useQuery(agentsQuery).data ?? []
  const rooms = useQuery(roomsQuery).data ?? []
  const change = (changes: Record<string, string>): void => onChange(withFilter(filter, changes))
  return (
    <form className={styles.filters} aria-label={t.filters} onSubmit={(event) => event.preventDefault()}>
      <Select
        label={t.status}
        value={filter.status ?? ''}
        options={[{ value: '', label: t.anyStatus }, ...statuses.map((value) => ({ value, label: statusWords[value] }))]}
        onChange={(status) => change({ status })}
      />
      <Select
        label={t.agent}
        value={filter.agent ?? ''}
        options={withCurrent(t.anyAgent, agents, filter.agent)}
        onChange={(agent) => change({ agent })}
      />
      <Select
        label={t.room}
        value={filter.room ?? ''}
        options={withCurrent(t.anyRoom, rooms, filter.room)}
        onChange={(room) => change({ room })}
      />
      <Select
        label={t.time}
        value={filter.since ?? ''}
        options={[{ value: '', label: t.anyTime }, ...(Object.keys(spans) as Since[]).map((value) => ({ value, label: sinceWords[value] }))]}
        onChange={(since) => change({ since })}
      />
      {isNarrowed(filter) && (
        <Button look="quiet" onClick={() => onChange({})}>
          <X size={14} aria-hidden />
          {t.showAll}
        </Button>
      )}
    </form>
  )
}

/** A link may name one that was deleted since; the choice must not look like another one. */
function withCurrent(any: string, known: readonly { id: string; name: string }[], current: string | undefined): { value: string; label: string }[] {
  const options = known.map(({ id, name }) => ({ value: id, label: name }))
  const isUnknown = current !== undefined && known.length > 0 && !known.some(({ id }) => id === current)
  return [{ value: '', label: any }, ...options, ...(isUnknown ? [{ value: current, label: '(deleted)' }] : [])]
}
