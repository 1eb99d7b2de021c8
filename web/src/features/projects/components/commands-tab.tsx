import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Play } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { EmptyState } from '@/components/ui/empty-state'
import { ProblemNote } from '@/components/ui/problem-note'
import { ProblemText } from '@/components/ui/problem-text'
import { Section } from '@/components/ui/section'
import { queryKeys } from '@/lib/api/query-keys'
import type { Project } from '@/lib/api/types'
import { shortTime } from '@/lib/format'
import { commandsQuery, startCommand } from '../api/project-commands'
import { commandWords, hasFailed } from '../model/command-words'
import { CommandOutput } from './command-output'
import { PortsSection } from './ports-section'
import { t } from '../texts'
import styles from './commands-tab.module.css'

const exampleCommand = 'python3 -m pytest -q'

/** Commands in the sandbox: those of people and agents, and a line to start one. */
export function CommandsTab({ project }: { project: Project }): ReactNode {
  const [line, setLine] = useState('')
  const [chosen, setChosen] = useState<string | null>(null)
  const queries = useQueryClient()
  const { data: commands, error, refetch } = useQuery(commandsQuery(project.id))
  const start = useMutation({
    mutationFn: () => startCommand(project.id, line),
    onSuccess: async ({ id }) => {
      setLine('')
      await queries.invalidateQueries({ queryKey: queryKeys.projects.commands(project.id) })
      setChosen(id)
    },
  })
  const shown = commands?.find(({ id }) => id === chosen) ?? commands?.[0]
  return (
    <>
      <Section title={t.commands} lead={t.commandsRunInTheSandbox}>
        <form
          className={styles.start}
          onSubmit={(event) => {
            event.preventDefault()
            if (line.trim() !== '') start.mutate()
          }}
        >
          <input aria-label={t.command} placeholder={exampleCommand} value={line} spellCheck={false} autoComplete="off" autoCapitalize="off" onChange={(event) => setLine(event.target.value)} />
          <Button type="submit" look="primary" isBusy={start.isPending} disabled={line.trim() === ''}>
            <Play size={14} aria-hidden />
            {t.run}
          </Button>
        </form>
        <ProblemText error={start.error} />
        {error && !commands && <ProblemNote title={t.couldNotLoadCommands} error={error} onRetry={() => void refetch()} />}
        {commands?.length === 0 && <EmptyState title={t.noCommandsYet} />}
        {commands && commands.length > 0 && (
          <ul className={styles.list} aria-label={t.commands}>
            {commands.map((command) => (
              <li key={command.id}>
                <button type="button" aria-current={command.id === shown?.id || undefined} onClick={() => setChosen(command.id)}>
                  <code dir="ltr">{command.command}</code>
                  <span data-failed={hasFailed(command) || undefined} data-live={command.has_processes || undefined}>
                    {commandWords(command)}
                  </span>
                  <time dateTime={command.started_at}>{shortTime(command.started_at)}</time>
                </button>
              </li>
            ))}
          </ul>
        )}
        {shown && <CommandOutput key={shown.id} projectId={project.id} command={shown} />}
      </Section>
      <PortsSection projectId={project.id} />
    </>
  )
}
