import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { LeaveDialog } from '@/components/ui/leave-guard'
import { ProblemNote } from '@/components/ui/problem-note'
import { useLeaveGuard } from '@/components/ui/use-leave-guard'
import { queryKeys } from '@/lib/api/query-keys'
import type { Skill } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { useAction } from '@/lib/use-action'
import { changeSkill, skillQuery } from '../api/skills'
import { specOf } from '../model/draft'
import { type Editing, follow, isDirty, specOnly, startEditing } from '../model/editing'
import { hasErrors } from '../model/findings'
import { mergePatch } from '../model/merge-patch'
import { checkDraft, useCheck } from '../model/use-check'
import { SaveBar, showFirstFinding } from './save-bar'
import { SkillForm } from './skill-form'
import styles from './skill-page.module.css'

export function EditTab({ skill }: { skill: Skill }): ReactNode {
  const [editing, setEditing] = useState<Editing>(() => startEditing(skill))
  const [note, setNote] = useState('')
  const form = useRef<HTMLDivElement>(null)
  const queries = useQueryClient()
  const { isBusy, problem, run } = useAction()
  const check = useCheck(editing.draft)
  const followed = follow(editing, skill)
  const isConflict = followed === 'conflict'
  const dirty = isDirty(editing)
  const guard = useLeaveGuard(dirty)

  useEffect(() => {
    if (followed !== 'conflict' && followed !== editing) setEditing(followed)
  }, [followed, editing])

  const save = (): void => {
    void run(async () => {
      if (hasErrors(await checkDraft(editing.draft))) return showFirstFinding(form.current)
      const base = isConflict ? { spec: specOnly(skill), version: skill.version } : editing.base
      const patch = mergePatch({ ...base.spec }, { ...specOf(editing.draft).spec })
      const saved = await changeSkill(skill.name, patch, base.version, note).catch(async (error: unknown) => {
        // It may have been changed elsewhere; then that is what has to be seen next.
        await queries.invalidateQueries(skillQuery(skill.name))
        throw error
      })
      setEditing(startEditing(saved))
      setNote('')
      queries.setQueryData(skillQuery(skill.name).queryKey, saved)
      notify(`Saved as version ${saved.version}.`)
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
    })
  }

  return (
    <div className={styles.edit} ref={form}>
      {isConflict && (
        <div className={styles.changed} role="alert">
          <p>
            The skill has become version {skill.version} meanwhile, and your changes were made over version {editing.base.version}. Saving puts yours in its place.
          </p>
          <Button size="small" onClick={() => setEditing(startEditing(skill))}>
            Drop mine, show version {skill.version}
          </Button>
        </div>
      )}
      <SkillForm draft={editing.draft} isNew={false} findings={check.findings} preview={check.preview} onChange={(draft) => setEditing({ ...editing, draft })} />
      {check.error != null && <ProblemNote title="The skill could not be checked" error={check.error} />}
      {problem != null && <ProblemNote title="The skill was not saved" error={problem} />}
      <SaveBar
        status={dirty ? 'Unsaved changes' : `As in version ${editing.base.version}`}
        findings={check.findings}
        label={isConflict ? 'Save mine' : 'Save'}
        isBusy={isBusy}
        isDisabled={!dirty}
        onSave={save}
      >
        {dirty && <input aria-label="Why it was changed" placeholder="Why? (kept with the version)" maxLength={200} value={note} onChange={(event) => setNote(event.target.value)} />}
      </SaveBar>
      <LeaveDialog leaving={guard.leaving} keep="Stay here" confirm="Leave without saving">
        What you changed on this page is not saved yet and would be lost.
      </LeaveDialog>
    </div>
  )
}
