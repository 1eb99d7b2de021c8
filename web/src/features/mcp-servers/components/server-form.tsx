import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { FormField } from '@/components/ui/form-field'
import { LeaveGuard } from '@/components/ui/leave-guard'
import { Segmented } from '@/components/ui/segmented'
import { type EntryDraft, splitCommand } from '../model/entry-draft'
import type { EntryProblem } from '../model/problems'
import { PairList } from './pair-list'
import styles from './server-form.module.css'

interface ServerFormProps {
  initial: EntryDraft
  isNew: boolean
  mayStartPrograms: boolean
  problem: EntryProblem | null
  isBusy: boolean
  onSave: (draft: EntryDraft) => void
}

const kinds = [
  { value: 'stdio', label: 'Command (stdio)', hint: 'A program on this machine' },
  { value: 'http', label: 'HTTP', hint: 'Streamable HTTP' },
  { value: 'sse', label: 'SSE (legacy)', hint: 'Legacy transport' },
] as const

export function ServerForm({ initial, isNew, mayStartPrograms, problem, isBusy, onSave }: ServerFormProps): ReactNode {
  const [draft, setDraft] = useState(initial)
  const set = (changes: Partial<EntryDraft>): void => setDraft((before) => ({ ...before, ...changes }))
  const at = (place: string): string | null => (problem?.place === place ? problem.text : null)
  const known = ['name', 'command', 'args', 'env', 'cwd', 'url', 'headers', 'timeout', 'startupTimeout']
  const text = (key: 'command' | 'cwd' | 'url' | 'timeout' | 'startupTimeout', label: string, hint: string, placeholder?: string): ReactNode => (
    <FormField label={label} hint={hint} problem={at(key)}>
      {(control) => (
        <input {...control} value={draft[key]} placeholder={placeholder} autoComplete="off" autoCapitalize="off" spellCheck={false} onChange={(event) => set({ [key]: event.target.value })} />
      )}
    </FormField>
  )
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (problem) form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus()
  }, [problem])
  const split = draft.args === '' ? splitCommand(draft.command) : null

  return (
    <form
      ref={form}
      className={styles.form}
      aria-label="MCP server"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        onSave(draft)
      }}
    >
      {isNew && (
        <FormField label="Name" problem={at('name')} hint="Letters, digits, - and _. Used as the prefix of its tools.">
          {(control) => <input {...control} value={draft.name} maxLength={64} autoComplete="off" autoCapitalize="off" spellCheck={false} onChange={(event) => set({ name: event.target.value })} />}
        </FormField>
      )}
      <div>
        <Segmented label="Kind" choices={kinds} value={draft.type} onChange={(type) => set({ type })} />
        {draft.type === 'stdio' && !mayStartPrograms && <p className={styles.note}>Only the operator of this server may add programs. You can add addresses.</p>}
      </div>
      {draft.type === 'stdio' ? (
        <>
          {text('command', 'Command', 'The program’s name or path on the server’s machine.', 'npx')}
          {split && (
            <p className={styles.note}>
              This looks like a full command line.{' '}
              <Button size="small" onClick={() => set({ command: split.command, args: split.args.join('\n') })}>
                Split into command and arguments
              </Button>
            </p>
          )}
          <FormField label="Arguments" hint="One per line, no quotes. Everyone who sees this page sees them: put secrets below." problem={at('args')}>
            {(control) => <textarea {...control} rows={3} spellCheck={false} value={draft.args} onChange={(event) => set({ args: event.target.value })} />}
          </FormField>
          <PairList label="Environment" keyLabel="Variable" pairs={draft.env} problem={at('env')} onChange={(env) => set({ env })} />
          {text('cwd', 'Folder', 'Working directory. Default: its own folder.')}
        </>
      ) : (
        <>
          {text('url', 'Address', 'The URL of the server.', 'https://example.org/mcp')}
          <PairList label="Headers" keyLabel="Header" pairs={draft.headers} problem={at('headers')} onChange={(headers) => set({ headers })} />
        </>
      )}
      <div className={styles.two}>
        {text('timeout', 'Call timeout (ms)', 'Default: the server’s')}
        {text('startupTimeout', 'Start timeout (ms)', 'Default: the server’s')}
      </div>
      {problem && (problem.place === null || !known.includes(problem.place)) && (
        <p className={styles.problem} role="alert">
          {problem.text}
        </p>
      )}
      <div className={styles.actions}>
        <Button type="submit" look="primary" isBusy={isBusy}>
          {isNew ? 'Add server' : 'Save'}
        </Button>
      </div>
      <LeaveGuard isChanged={JSON.stringify(draft) !== JSON.stringify(initial)} isSaving={isBusy} />
    </form>
  )
}
