import { Link, useNavigate } from '@tanstack/react-router'
import { FlaskConical, Play } from 'lucide-react'
import { type ReactNode, useEffect, useRef } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { AgentMark } from '@/components/ui/agent-mark'
import { Button } from '@/components/ui/button'
import { LeaveGuard } from '@/components/ui/leave-guard'
import { Segmented } from '@/components/ui/segmented'
import type { Agent } from '@/lib/api/types'
import { useCommands } from '@/lib/commands'
import { askForTask } from '@/lib/execute-request'
import { type Draft, withName } from '../model/draft'
import { useDraft } from '../model/use-draft'
import { AgentForm } from './agent-form'
import { TemplateChoice } from './template-choice'
import { AgentMenu } from './agent-menu'
import type { AgentView, ShowRoom } from './agent-page'
import styles from './agent-editor.module.css'
import { EffectiveView } from './effective-view'
import { MemoryView } from './memory-view'
import { AgentSaveBar } from './agent-save-bar'
import { SideRoom } from './side-room'
import { t } from '../texts'

interface AgentEditorProps {
  /** Null while there is none yet. */
  agent: Agent | null
  initial: Draft
  /** The default name of a new agent. */
  suggestName?: (provider: string) => string
  view: AgentView
  showRoom: ShowRoom
}

const views = [
  { value: 'settings', get label() { return t.settings } },
  { value: 'effective', get label() { return t.effectiveTools } },
  { value: 'memory', get label() { return t.memory } },
] as const

export function AgentEditor({ agent, initial, suggestName, view, showRoom }: AgentEditorProps): ReactNode {
  const { draft, change, discard, save, problem, isSaving, isChanged } = useDraft(agent, initial)
  const navigate = useNavigate()
  const form = useRef<HTMLFormElement>(null)
  const title = agent?.name ?? t.newAgent
  const isTesting = agent !== null && view.test === true

  useEffect(() => {
    if (problem) form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus()
  }, [problem])

  const show = (id: string, search: AgentView): void => void navigate({ to: '/agents/$agentId', params: { agentId: id }, search, replace: agent !== null })

  const saveAnd = async (next: AgentView): Promise<void> => {
    // What stands half typed in a list of names is taken when the field is left.
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur()
    // After that has been drawn, so that it is in what is saved.
    await new Promise((resolve) => setTimeout(resolve))
    const saved = await save.current()
    if (saved && (!agent || next.test)) show(saved.id, next)
  }

  useCommands([
    { id: 'save-agent', title: t.saveTheAgent, group: 'agents', keys: 'mod+s', run: () => void saveAnd({ ...view }) },
    ...(agent ? [{ id: 'test-agent', title: t.testTheAgentInASideRoom, group: 'agents' as const, run: () => void test() }] : []),
  ])

  const test = async (): Promise<void> => {
    if (!agent || isChanged) await saveAnd({ test: true })
    else show(agent.id, { ...view, test: isTesting ? undefined : true })
  }

  return (
    <PageBody
      title={title}
      width="narrow"
      back={<Link to="/agents">{t.agents}</Link>}
      mark={agent && <AgentMark id={agent.id} name={agent.name} />}
      aside={isTesting && <SideRoom agent={agent} isChanged={isChanged} showRoom={showRoom} onClose={() => show(agent.id, { ...view, test: undefined })} />}
      actions={
        agent && (
          <>
            <Button className={styles.action} onClick={() => askForTask([agent.id])} title={t.runATask}>
              <Play size={14} aria-hidden />
              <span className="visually-hidden-narrow">{t.runATask}</span>
            </Button>
            <Button className={styles.action} aria-pressed={isTesting} onClick={() => void test()} title={t.testInASideRoom}>
              <FlaskConical size={14} aria-hidden />
              <span className="visually-hidden-narrow">{isChanged ? t.saveAndTest : t.testIt}</span>
            </Button>
            <AgentMenu agent={agent} />
          </>
        )
      }
    >
      {agent && (
        <Segmented
          label={t.whatToShow}
          choices={views}
          value={view.show ?? 'settings'}
          onChange={(value) => show(agent.id, { ...view, show: value === 'settings' ? undefined : value })}
        />
      )}
      {agent && view.show === 'effective' && <EffectiveView agent={agent} isChanged={isChanged} />}
      {agent && view.show === 'memory' && <MemoryView agent={agent} />}
      {(!agent || view.show === undefined) && (
        <>
          {!agent && <TemplateChoice />}
          <AgentForm
            draft={draft}
            problem={problem}
            form={form}
            isNew={agent === null}
            onChange={(changes) => change(suggestName ? withName(draft, changes, suggestName) : changes)}
            onSave={() => void saveAnd({ ...view })}
          />
        </>
      )}
      <AgentSaveBar
        isNew={agent === null}
        isChanged={isChanged}
        isSaving={isSaving}
        problem={problem}
        onSave={() => void saveAnd({ ...view })}
        onTest={() => void saveAnd({ test: true })}
        onDiscard={discard}
      />
      <LeaveGuard isChanged={isChanged} isSaving={isSaving} />
    </PageBody>
  )
}
