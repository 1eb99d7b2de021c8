import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { McpServer } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { allowVariable } from '../api/mcp-api'
import { t } from '../texts'
import styles from './mcp-server-page.module.css'

/** The environment variables that a server refers to and may not use yet. Only the operator is told that one is set. */
export function MissingVariables({ server }: { server: McpServer }): ReactNode {
  const queries = useQueryClient()
  const allow = useMutation({
    mutationFn: allowVariable,
    onSuccess: () => queries.invalidateQueries({ queryKey: queryKeys.mcpServers.all }),
    onError: (error) => notify(explain(error), 'problem'),
  })
  const missing = server.variables.filter((variable) => !variable.allowed && variable.set)
  if (missing.length === 0) {
    return null
  }
  return (
    <div className={styles.variables}>
      <p className={styles.note}>{t.variablesNotAllowed}</p>
      {missing.map(({ name }) => (
        <Button key={name} isBusy={allow.isPending && allow.variables === name} onClick={() => allow.mutate(name)}>
          {t.allowVariable(name)}
        </Button>
      ))}
    </div>
  )
}
