import { useQuery } from '@tanstack/react-query'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Select } from '@/components/ui/select'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import { type RunFilter, type Since, isNarrowed, spans, statuses, withFilter } from '../model/run-filter'
import { sinceWords, statusWords } from '../model/run-words'
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
    <form className={styles.filters} aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Select
        label="Status"
        value={filter.status ?? ''}
        options={[{ value: '', label: 'Any status' }, ...statuses.map((value) => ({ value, label: statusWords[value] }))]}
        onChange={(status) => change({ status })}
      />
      <Select
        label="Agent"
        value={filter.agent ?? ''}
        options={withCurrent('Any agent', agents, filter.agent)}
        onChange={(agent) => change({ agent })}
      />
      <Select
        label="Room"
        value={filter.room ?? ''}
        options={withCurrent('Any room', rooms, filter.room)}
        onChange={(room) => change({ room })}
      />
      <Select
        label="Time"
        value={filter.since ?? ''}
        options={[{ value: '', label: 'Any time' }, ...(Object.keys(spans) as Since[]).map((value) => ({ value, label: sinceWords[value] }))]}
        onChange={(since) => change({ since })}
      />
      {isNarrowed(filter) && (
        <Button look="quiet" onClick={() => onChange({})}>
          <X size={14} aria-hidden />
          Show all
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
