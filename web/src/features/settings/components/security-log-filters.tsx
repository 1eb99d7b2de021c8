import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Select } from '@/components/ui/select'
import type { AuditFilter } from '../model/audit-filter'
import { objectWord } from '../model/audit-sentence'
import styles from './security-log.module.css'

const actions = [
  ['sign_in', 'Sign-ins'],
  ['sign_out', 'Sign-outs'],
  ['refuse', 'Refused requests'],
  ['approve', 'Approvals'],
  ['create', 'Created'],
  ['update', 'Changed'],
  ['delete', 'Deleted'],
  ['revoke', 'Revoked'],
  ['post', 'Messages'],
  ['cancel', 'Stopped runs'],
  ['start', 'Started programs'],
  ['trust', 'Trusted files'],
  ['erase', 'Erased'],
] as const

const objects = ['agent', 'approval', 'browser_session', 'budget', 'mcp_file', 'mcp_server', 'message', 'program', 'request', 'room', 'run', 'skill', 'token', 'tool', 'upload', 'user']

export function SecurityLogFilters({ filter, onChange }: { filter: AuditFilter; onChange: (filter: AuditFilter) => void }): ReactNode {
  return (
    <form className={styles.filters} aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Select
        label="Action"
        value={filter.action ?? ''}
        options={[{ value: '', label: 'All actions' }, ...actions.map(([value, label]) => ({ value, label }))]}
        onChange={(action) => onChange({ ...filter, action: action || undefined })}
      />
      <Select
        label="Object"
        value={filter.object ?? ''}
        options={[{ value: '', label: 'All objects' }, ...objects.map((value) => ({ value, label: capitalized(objectWord(value)) }))]}
        onChange={(object) => onChange({ ...filter, object: object || undefined })}
      />
      {Object.values(filter).some((value) => value !== undefined) && (
        <Button look="quiet" onClick={() => onChange({})}>
          <X size={14} aria-hidden />
          {filter.user ? 'Show everyone and everything' : 'Show all'}
        </Button>
      )}
    </form>
  )
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
