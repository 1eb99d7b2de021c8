import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Select } from '@/components/ui/select'
import type { AuditFilter } from '../model/audit-filter'
import { objectWord } from '../model/audit-sentence'
import { t } from '../texts'
import styles from './security-log.module.css'

const actions = () => [
  ['sign_in', t.signIns],
  ['sign_out', t.signOuts],
  ['refuse', t.refusedRequests],
  ['approve', t.approvals],
  ['create', t.createdTitle],
  ['update', t.changed],
  ['delete', t.deleted],
  ['revoke', t.revoked],
  ['post', t.messages],
  ['cancel', t.stoppedRuns],
  ['start', t.startedPrograms],
  ['trust', t.trustedFiles],
  ['erase', t.erased],
] as const

const objects = ['agent', 'approval', 'browser_session', 'budget', 'mcp_file', 'mcp_server', 'message', 'program', 'request', 'room', 'run', 'skill', 'token', 'tool', 'upload', 'user']

export function SecurityLogFilters({ filter, onChange }: { filter: AuditFilter; onChange: (filter: AuditFilter) => void }): ReactNode {
  return (
    <form className={styles.filters} aria-label={t.filters} onSubmit={(event) => event.preventDefault()}>
      <Select
        label={t.action}
        value={filter.action ?? ''}
        options={[{ value: '', label: t.allActions }, ...actions().map(([value, label]) => ({ value, label }))]}
        onChange={(action) => onChange({ ...filter, action: action || undefined })}
      />
      <Select
        label={t.object}
        value={filter.object ?? ''}
        options={[{ value: '', label: t.allObjects }, ...objects.map((value) => ({ value, label: capitalized(objectWord(value)) }))]}
        onChange={(object) => onChange({ ...filter, object: object || undefined })}
      />
      {Object.values(filter).some((value) => value !== undefined) && (
        <Button look="quiet" onClick={() => onChange({})}>
          <X size={14} aria-hidden />
          {filter.user ? t.showEveryoneAndEverything : t.showAll}
        </Button>
      )}
    </form>
  )
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
