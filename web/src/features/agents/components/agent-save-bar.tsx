import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { SaveBar } from '@/components/ui/save-bar'
import textStyles from '@/components/ui/text.module.css'
import type { FormProblem } from '../model/problems'
import { t } from '../texts'

interface AgentSaveBarProps {
  isNew: boolean
  isChanged: boolean
  isSaving: boolean
  problem: FormProblem | null
  onSave: () => void
  onTest: () => void
  onDiscard: () => void
}

/** Below the form while there is something to save. */
export function AgentSaveBar({ isNew, isChanged, isSaving, problem, onSave, onTest, onDiscard }: AgentSaveBarProps): ReactNode {
  if (!isNew && !isChanged) return null
  return (
    <SaveBar
      status={problem ? <Problem problem={problem} /> : isNew ? t.notCreatedYet : t.unsavedChanges}
      label={isNew ? t.createAgent : isSaving ? t.saving : t.save}
      isBusy={isSaving}
      onSave={onSave}
    >
      {isNew ? (
        <Button isBusy={isSaving} onClick={onTest}>
          {t.createAndTest}
        </Button>
      ) : (
        <Button disabled={isSaving} onClick={onDiscard}>
          {t.discard}
        </Button>
      )}
    </SaveBar>
  )
}

function Problem({ problem }: { problem: FormProblem }): ReactNode {
  return (
    <p className={textStyles.problem} role={problem.place === null ? 'alert' : undefined}>
      {problem.place === null ? problem.text : t.notSavedSeeTheMarkedFieldsAbove}
    </p>
  )
}
