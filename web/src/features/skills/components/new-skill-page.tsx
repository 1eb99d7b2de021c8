import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useRef, useState } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { Button } from '@/components/ui/button'
import { LeaveGuard } from '@/components/ui/leave-guard'
import { ProblemNote } from '@/components/ui/problem-note'
import { queryKeys } from '@/lib/api/query-keys'
import { notify } from '@/lib/notices'
import { createSkill } from '../api/skills'
import { type Draft, draftOf, emptySpec, specOf } from '../model/draft'
import { isDirty } from '../model/editing'
import { hasErrors } from '../model/findings'
import { checkDraft, useCheck } from '../model/use-check'
import { ReadFileDialog } from './read-file-dialog'
import { SkillForm } from './skill-form'
import { SkillSaveBar, showFirstFinding } from './skill-save-bar'
import { t } from '../texts'

export function NewSkillPage(): ReactNode {
  const [draft, setDraft] = useState<Draft>(() => draftOf(emptySpec))
  const [hasTried, setHasTried] = useState(false)
  const [isReading, setIsReading] = useState(false)
  const check = useCheck(draft)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const form = useRef<HTMLDivElement>(null)
  const isTyped = isDirty({ base: { spec: emptySpec, version: 0 }, draft })
  // Empty fields are not reported before the first attempt to save.
  const findings = hasTried ? check.findings : check.findings.filter(({ pointer }) => !isUntouched(draft, pointer))

  const save = useMutation({
    mutationFn: async () => (hasErrors(await checkDraft(draft)) ? null : createSkill(specOf(draft).spec)),
    onMutate: () => setHasTried(true),
    onSuccess: async (skill) => {
      if (skill === null) return showFirstFinding(form.current)
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
      notify(t.wasCreated(skill.name))
      await navigate({ to: '/skills/$name', params: { name: skill.name } })
    },
  })

  return (
    <PageBody title={t.newSkill} width="narrow" back={<Link to="/skills">{t.skills}</Link>} actions={<Button onClick={() => setIsReading(true)}>{t.importSkillMd}</Button>}>
      <div ref={form}>
        <SkillForm draft={draft} isNew findings={findings} preview={check.preview} onChange={setDraft} />
      </div>
      {check.error != null && <ProblemNote title={t.theSkillCouldNotBeChecked} error={check.error} />}
      {save.error && <ProblemNote title={t.theSkillWasNotCreated} error={save.error} />}
      <SkillSaveBar status={isTyped ? t.notSavedYet : t.nameDescriptionAndInstructionsAreRequired} findings={findings} form={form} label={t.createSkill} isBusy={save.isPending} isDisabled={!isTyped} onSave={() => save.mutate()} />
      {isReading && (
        <ReadFileDialog
          onClose={() => setIsReading(false)}
          onRead={(spec) => {
            setDraft(draftOf(spec))
            setIsReading(false)
          }}
        />
      )}
      <LeaveGuard isChanged={isTyped} isSaving={save.isPending} />
    </PageBody>
  )
}

function isUntouched(draft: Draft, pointer: string): boolean {
  return (pointer === '/name' && draft.name === '') || (pointer === '/description' && draft.description === '') || (pointer === '/body' && draft.body === '')
}
