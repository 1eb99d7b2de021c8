import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import textStyles from '@/components/ui/text.module.css'
import { VisibleText } from '@/components/ui/visible-text'
import { explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import { forgetTool, rememberedTools } from '../api/room-commands'
import { useAgents } from '../model/use-agents'
import { t } from '../texts'
import styles from './room-dialog.module.css'

/** What was allowed once and for all, and how to take that back. */
export function RememberedTools({ roomId }: { roomId: string }): ReactNode {
  const queries = useQueryClient()
  const queryKey = queryKeys.rooms.remembered(roomId)
  const { data: tools = [] } = useQuery({ queryKey, queryFn: () => rememberedTools(roomId), staleTime: 0 })
  const agents = useAgents()
  const forget = useMutation({
    mutationFn: (tool: (typeof tools)[number]) => forgetTool(roomId, tool),
    onSettled: () => queries.invalidateQueries({ queryKey }),
  })
  if (tools.length === 0) return null
  return (
    <fieldset className={styles.agents}>
      <legend>{t.alwaysAllowedTools}</legend>
      {tools.map((tool) => (
        <div key={`${tool.agent_id} ${tool.scope} ${tool.rule}`} className={styles.agent}>
          <code>
            <VisibleText text={tool.rule} />
          </code>
          <span className={textStyles.detail}>{agents.find((agent) => agent.id === tool.agent_id)?.name}</span>
          <Button size="small" className={styles.place} isBusy={forget.isPending && forget.variables === tool} onClick={() => forget.mutate(tool)}>
            {t.removeTitle}
          </Button>
        </div>
      ))}
      {forget.error && <p className={textStyles.problem}>{explain(forget.error)}</p>}
    </fieldset>
  )
}
