import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useRef, useState } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { Button } from '@/components/ui/button'
import { LeaveDialog } from '@/components/ui/leave-guard'
import { ProblemNote } from '@/components/ui/problem-note'
import { useLeaveGuard } from '@/components/ui/use-leave-guard'
import { queryKeys } from '@/lib/api/query-keys'
import { notify } from '@/lib/notices'
import { useAction } from '@/lib/use-action'
import { createSkill } from '../api/skills'
import { type Draft, draftOf, emptySpec, specOf } from '../model/draft'
import { isDirty } from '../model/editing'
import { hasErrors } from '../model/findings'
import { checkDraft, useCheck } from '../model/use-check'
import { BackToSkills } from './back-to-skills'
import { ReadFileDialog } from './read-file-dialog'
import { SaveBar, showFirstFinding } from './save-bar'
import { SkillForm } from './skill-form'

export function NewSkillPage(): ReactNode {
  const [draft, setDraft] = useState<Draft>(() => draftOf(emptySpec))
  const [hasTried, setHasTried] = useState(false)
  const [isReading, setIsReading] = useState(false)
  const check = useCheck(draft)
  const { isBusy, problem, run } = useAction()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const form = useRef<HTMLDivElement>(null)
  const isTyped = isDirty({ base: { spec: emptySpec, version: 0 }, draft })
  const guard = useLeaveGuard(isTyped)
  // Empty fields are not reported before the first attempt to save.
  const findings = hasTried ? check.findings : check.findings.filter(({ pointer }) => !isUntouched(draft, pointer))

  const save = (): void => {
    setHasTried(true)
    void run(async () => {
      if (hasErrors(await checkDraft(draft))) return showFirstFinding(form.current)
      const skill = await createSkill(specOf(draft).spec)
      guard.letGo()
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
      notify(`${skill.name} was made.`)
      await navigate({ to: '/skills/$name', params: { name: skill.name } })
    })
  }

  return (
    <PageBody title="New skill" width="narrow" before={<BackToSkills />} actions={<Button onClick={() => setIsReading(true)}>Read a SKILL.md</Button>}>
      <div ref={form}>
        <SkillForm draft={draft} isNew findings={findings} preview={check.preview} onChange={setDraft} />
      </div>
      {check.error != null && <ProblemNote title="The skill could not be checked" error={check.error} />}
      {problem != null && <ProblemNote title="The skill was not made" error={problem} />}
      <SaveBar status={isTyped ? 'Not saved yet' : 'Name, description and instructions are needed'} findings={findings} label="Make the skill" isBusy={isBusy} isDisabled={!isTyped} onSave={save} />
      {isReading && (
        <ReadFileDialog
          onClose={() => setIsReading(false)}
          onRead={(spec) => {
            setDraft(draftOf(spec))
            setIsReading(false)
          }}
        />
      )}
      <LeaveDialog leaving={guard.leaving} keep="Stay here" confirm="Leave without saving">
        What you changed on this page is not saved yet and would be lost.
      </LeaveDialog>
    </PageBody>
  )
}

function isUntouched(draft: Draft, pointer: string): boolean {
  return (pointer === '/name' && draft.name === '') || (pointer === '/description' && draft.description === '') || (pointer === '/body' && draft.body === '')
}
