import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { FormField } from '@/components/ui/form-field'
import { LeaveGuard } from '@/components/ui/leave-guard'
import { SaveBar } from '@/components/ui/save-bar'
import { Segmented } from '@/components/ui/segmented'
import { type EntryDraft, splitCommand } from '../model/entry-draft'
import type { EntryProblem } from '../model/problems'
import { PairList } from './pair-list'
import { t } from '../texts'
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
  { value: 'stdio', get label() { return t.commandStdio }, get hint() { return t.aProgramOnThisMachine } },
  { value: 'http', label: 'HTTP', get hint() { return t.streamableHttp } },
  { value: 'sse', get label() { return t.sseLegacy }, get hint() { return t.legacyTransport } },
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
  const isChanged = JSON.stringify(draft) !== JSON.stringify(initial)
  const split = draft.args === '' ? splitCommand(draft.command) : null

  return (
    <form
      ref={form}
      className={styles.form}
      aria-label={t.mcpServer}
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        onSave(draft)
      }}
    >
      {isNew && (
        <FormField label={t.name} problem={at('name')} hint={t.lettersDigitsAndUsedAsThePrefix}>
          {(control) => <input {...control} value={draft.name} maxLength={64} autoComplete="off" autoCapitalize="off" spellCheck={false} onChange={(event) => set({ name: event.target.value })} />}
        </FormField>
      )}
      <div>
        <Segmented label={t.kind} choices={kinds} value={draft.type} onChange={(type) => set({ type })} />
        {draft.type === 'stdio' && !mayStartPrograms && <p className={styles.note}>{t.onlyTheOperatorOfThisServerMay}</p>}
      </div>
      {draft.type === 'stdio' ? (
        <>
          {text('command', t.command, t.theProgramsNameOrPathOnThe, 'npx')}
          {split && (
            <p className={styles.note}>
              {t.thisLooksLikeAFullCommandLine}{' '}
              <Button size="small" onClick={() => set({ command: split.command, args: split.args.join('\n') })}>
                {t.splitIntoCommandAndArguments}
              </Button>
            </p>
          )}
          <FormField label={t.arguments} hint={t.onePerLineNoQuotesEveryoneWho} problem={at('args')}>
            {(control) => <textarea {...control} rows={3} spellCheck={false} value={draft.args} onChange={(event) => set({ args: event.target.value })} />}
          </FormField>
          <PairList label={t.environment} keyLabel={t.variable} pairs={draft.env} problem={at('env')} onChange={(env) => set({ env })} />
          {text('cwd', t.folder, t.workingDirectoryDefaultItsOwnFolder)}
        </>
      ) : (
        <>
          {text('url', t.address, t.theUrlOfTheServer, 'https://example.org/mcp')}
          <PairList label={t.headers} keyLabel={t.header} pairs={draft.headers} problem={at('headers')} onChange={(headers) => set({ headers })} />
        </>
      )}
      <div className={styles.two}>
        {text('timeout', t.callTimeoutMs, t.defaultTheServers)}
        {text('startupTimeout', t.startTimeoutMs, t.defaultTheServers)}
      </div>
      {problem && (problem.place === null || !known.includes(problem.place)) && (
        <p className={styles.problem} role="alert">
          {problem.text}
        </p>
      )}
      {(isNew || isChanged) && <SaveBar status={isNew ? t.notAddedYet : t.unsavedChanges} label={isNew ? t.addServer : t.save} isBusy={isBusy} />}
      <LeaveGuard isChanged={isChanged} isSaving={isBusy} />
    </form>
  )
}
