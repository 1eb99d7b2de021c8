import { useQuery } from '@tanstack/react-query'
import { Play } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import { FormField } from '@/components/ui/form-field'
import { Kbd } from '@/components/ui/kbd'
import { agentsQuery, providersQuery } from '@/lib/api/queries'
import type { ExecuteRequest } from '@/lib/execute-request'
import { remember, remembered } from '@/lib/storage'
import { lackOf, providerTitle } from '@/lib/providers'
import { useExecution } from '../model/use-execution'
import styles from './execute-dialog.module.css'
import { ExecutionView } from './execution-view'
import { RichText } from '@/components/ui/rich-text'
import { t } from '../texts'

/** One task for one agent: asked, watched, answered, counted. */
export function ExecuteDialog({ request, onClose }: { request: ExecuteRequest; onClose: () => void }): ReactNode {
  const agents = useQuery(agentsQuery).data ?? []
  const offered = request.agentIds.length > 0 ? agents.filter((agent) => request.agentIds.includes(agent.id)) : agents
  const [chosen, setChosen] = useState<string | null>(request.agentIds[0] ?? remembered<string | null>('last-executed', null))
  const [task, setTask] = useState('')
  const executing = useExecution()
  const providers = useQuery(providersQuery).data ?? []
  const lackOfProvider = (name: string): string | null => {
    const provider = providers.find((one) => one.name === name)
    return provider ? lackOf(provider) : null
  }
  const { execution, start, clear } = executing
  const agent = offered.find(({ id }) => id === chosen) ?? offered[0]
  const isPossible = agent !== undefined && task.trim() !== ''

  const run = (): void => {
    if (!isPossible) return
    remember('last-executed', agent.id)
    start(agent.id, task)
  }

  return (
    <Dialog title={t.runATask} width="wide" onClose={onClose}>
      <div className={styles.body}>
        {execution && agent ? (
          <ExecutionView agent={agent} task={task} executing={executing} onAgain={clear} onClose={onClose} />
        ) : (
          <form
            className={styles.form}
            aria-label={t.task}
            onSubmit={(event) => {
              event.preventDefault()
              run()
            }}
          >
            {offered.length > 1 || !agent ? (
              <FormField label={t.agent} hint={offered.length === 0 ? t.noAgentsYetCreateOneOnThe : undefined}>
                {(control) => (
                  <select {...control} value={agent?.id ?? ''} onChange={(event) => setChosen(event.target.value)}>
                    {offered.map(({ id, name, provider, model }) => (
                      <option key={id} value={id}>
                        {[name, providerTitle(provider), model, lackOfProvider(provider)].filter(Boolean).join(' · ')}
                      </option>
                    ))}
                  </select>
                )}
              </FormField>
            ) : (
              <p className={styles.who}>
                <RichText text={t.agentRunsItOnce} parts={{ agent: <strong>{agent.name}</strong> }} />
              </p>
            )}
            <FormField label={t.task} hint={t.theAnswerAndItsCostAreShown}>
              {(control) => (
                <textarea
                  {...control}
                  value={task}
                  rows={6}
                  placeholder={t.describeTheTask}
                  ref={focusFirst}
                  onChange={(event) => setTask(event.target.value)}
                  onKeyDown={(event) => {
                    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
                      event.preventDefault()
                      run()
                    }
                  }}
                />
              )}
            </FormField>
            <div className={styles.actions}>
              <span className={styles.keys}>
                <Kbd keys="mod+Enter" />
              </span>
              <Button onClick={onClose}>{t.cancel}</Button>
              <Button type="submit" look="primary" disabled={!isPossible}>
                <Play size={14} aria-hidden />
                {t.run}
              </Button>
            </div>
          </form>
        )}
      </div>
    </Dialog>
  )
}

/** A modal dialog gives the focus to what carries this mark when it opens; React would only focus it, too early. */
function focusFirst(element: HTMLElement | null): void {
  element?.setAttribute('autofocus', '')
}
