import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useLayoutEffect, useRef } from 'react'
import { Button } from '@/components/ui/button'
import { CopyButton } from '@/components/ui/copy-button'
import { explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { ProjectCommand } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { stopCommand } from '../api/project-commands'
import { commandWords } from '../model/command-words'
import { useCommandOutput } from '../model/use-command-output'
import { AnsiText } from './ansi-text'
import { t } from '../texts'
import styles from './commands-tab.module.css'

/** Within this distance of the end, what is printed stays in sight. */
const nearEnd = 40

export function CommandOutput({ projectId, command }: { projectId: string; command: ProjectCommand }): ReactNode {
  const { text, isCut } = useCommandOutput(projectId, command.id)
  const box = useRef<HTMLPreElement>(null)
  const isAtEnd = useRef(true)
  const queries = useQueryClient()
  const stop = useMutation({
    mutationFn: () => stopCommand(projectId, command.id),
    onSuccess: () => queries.invalidateQueries({ queryKey: queryKeys.projects.commands(projectId) }),
    onError: (error) => notify(explain(error), 'problem'),
  })

  useLayoutEffect(() => {
    if (isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [text])

  return (
    <div className={styles.output}>
      <div className={styles.bar}>
        <code dir="ltr">{command.command}</code>
        <span role="status">{commandWords(command)}</span>
        <CopyButton text={() => text} label={t.copyOutput} />
        {command.has_processes && (
          <Button size="small" look="danger" isBusy={stop.isPending} onClick={() => stop.mutate()}>
            {t.stop}
          </Button>
        )}
      </div>
      {isCut && <p className={styles.note}>{t.onlyTheEndIsShown}</p>}
      <pre
        ref={box}
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard must reach it
        tabIndex={0}
        role="log"
        aria-label={t.output}
        dir="ltr"
        onScroll={({ currentTarget }) => (isAtEnd.current = currentTarget.scrollHeight - currentTarget.scrollTop - currentTarget.clientHeight < nearEnd)}
      >
        <AnsiText text={text} />
      </pre>
    </div>
  )
}
