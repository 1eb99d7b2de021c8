import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { LeaveGuard } from '@/components/ui/leave-guard'
import { ProblemNote } from '@/components/ui/problem-note'
import { queryKeys } from '@/lib/api/query-keys'
import type { Skill } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { changeSkill, skillQuery } from '../api/skills'
import { specOf } from '../model/draft'
import { type Editing, follow, isDirty, specOnly, startEditing } from '../model/editing'
import { hasErrors } from '../model/findings'
import { mergePatch } from '../model/merge-patch'
import { checkDraft, useCheck } from '../model/use-check'
import { SkillForm } from './skill-form'
import styles from './skill-page.module.css'
import { SkillSaveBar, showFirstFinding } from './skill-save-bar'
import { t } from '../texts'

export function EditTab({ skill }: { skill: Skill }): ReactNode {
  const [editing, setEditing] = useState<Editing>(() => startEditing(skill))
  const [note, setNote] = useState('')
  const form = useRef<HTMLDivElement>(null)
  const queries = useQueryClient()
  const check = useCheck(editing.draft)
  const followed = follow(editing, skill)
  const isConflict = followed === 'conflict'
  const dirty = isDirty(editing)

  useEffect(() => {
    if (followed !== 'conflict' && followed !== editing) setEditing(followed)
  }, [followed, editing])

  const save = useMutation({
    mutationFn: async () => {
      if (hasErrors(await checkDraft(editing.draft))) return null
      const base = isConflict ? { spec: specOnly(skill), version: skill.version } : editing.base
      const patch = mergePatch({ ...base.spec }, { ...specOf(editing.draft).spec })
      return changeSkill(skill.name, patch, base.version, note)
    },
    onSuccess: async (saved) => {
      if (saved === null) return showFirstFinding(form.current)
      setEditing(startEditing(saved))
      setNote('')
      queries.setQueryData(skillQuery(skill.name).queryKey, saved)
      notify(t.savedAsVersion(saved.version))
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
    },
    // The skill may have been changed elsewhere; its new version shows the conflict.
    onError: () => queries.invalidateQueries(skillQuery(skill.name)),
  })

  return (
    <div className={styles.edit} ref={form}>
      {isConflict && (
        <div className={styles.changed} role="alert">
          <p>{t.versionWasSavedMeanwhileYourChangesAre(skill.version, editing.base.version)}</p>
          <Button size="small" onClick={() => setEditing(startEditing(skill))}>
            {t.discardMyChanges}
          </Button>
        </div>
      )}
      <SkillForm draft={editing.draft} isNew={false} findings={check.findings} preview={check.preview} onChange={(draft) => setEditing({ ...editing, draft })} />
      {check.error != null && <ProblemNote title={t.theSkillCouldNotBeChecked} error={check.error} />}
      {save.error && <ProblemNote title={t.theSkillWasNotSaved} error={save.error} />}
      <SkillSaveBar
        status={dirty ? t.unsavedChanges : t.versionWith(editing.base.version)}
        findings={check.findings}
        form={form}
        label={isConflict ? t.overwrite : t.save}
        isBusy={save.isPending}
        isDisabled={!dirty}
        onSave={() => save.mutate()}
      >
        {dirty && <input className={styles.note} aria-label={t.reasonForTheChange} placeholder={t.whySavedWithTheVersion} maxLength={200} value={note} onChange={(event) => setNote(event.target.value)} />}
      </SkillSaveBar>
      <LeaveGuard isChanged={dirty} isSaving={save.isPending} />
    </div>
  )
}
