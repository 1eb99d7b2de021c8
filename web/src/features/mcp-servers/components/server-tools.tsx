import { useQuery, useQueryClient } from '@tanstack/react-query'
import { RefreshCw } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { Button } from '@/components/ui/button'
import { CodeBlock } from '@/components/ui/code-block'
import { Markdown } from '@/components/ui/markdown'
import { explain } from '@/lib/api/client'
import type { McpServer, McpTool } from '@/lib/api/types'
import { sentence } from '@/lib/format'
import { serverQuery, toolsQuery } from '../api/mcp-api'
import styles from './mcp-server-page.module.css'
import { TryTool } from './try-tool'
import { t } from '../texts'

/** What it offers, with schemas and a way to try each. */
export function ServerTools({ server }: { server: McpServer }): ReactNode {
  const isUsable = !server.disabled && server.problem === null
  const { data, error, isFetching, refetch } = useQuery({ ...toolsQuery(server.name), enabled: isUsable })
  const queries = useQueryClient()
  useEffect(() => {
    // Asking has started it, or has failed to.
    if (data || error) void queries.invalidateQueries({ ...serverQuery(server.name), exact: true })
  }, [queries, server.name, data, error])
  if (!isUsable) return <p className={styles.note}>{server.disabled ? t.turnItOnToSeeItsTools : t.toolsAreListedOnceTheServerWorks}</p>
  return (
    <>
      {error && (
        <p className={styles.problem} role="alert">
          {sentence(explain(error))}
        </p>
      )}
      {!data && isFetching && <p role="status">{t.startingServerAndLoadingTools}</p>}
      {data?.instructions && (
        <section aria-label={t.serverInstructions}>
          <h2 className={styles.heading}>{t.serverInstructions}</h2>
          <Markdown text={data.instructions} />
        </section>
      )}
      {data && (
        <div className={styles.tools}>
          {data.tools.map((tool) => (
            <ToolCard key={tool.name} server={server.name} tool={tool} />
          ))}
          {data.tools.length === 0 && <p className={styles.note}>{t.noTools}</p>}
          {data.quarantined.map(({ name, reason }, index) => (
            <p key={index} className={styles.problem}>{t.isBlocked(name ?? t.aToolWithoutAName, reason)}</p>
          ))}
        </div>
      )}
      <div>
        <Button size="small" look="quiet" isBusy={isFetching} onClick={() => void refetch()}>
          <RefreshCw size={13} aria-hidden />
          {t.reload}
        </Button>
      </div>
    </>
  )
}

function ToolCard({ server, tool }: { server: string; tool: McpTool }): ReactNode {
  const [isOpen, setIsOpen] = useState(false)
  const { read_only: readOnly, destructive } = tool.annotations
  const headline = tool.title ?? tool.description?.split('\n')[0]
  return (
    <details className={styles.tool} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        <code>{tool.name}</code>
        {readOnly && <span>{t.readOnly}</span>}
        {destructive && <span>{t.destructive}</span>}
        <span>{headline}</span>
      </summary>
      {isOpen && (
        <div className={styles.inside}>
          {tool.description && tool.description !== headline && <p className={styles.note}>{tool.description}</p>}
          <p className={styles.note}>
            {t.toolName} <code>{tool.full_name}</code>
          </p>
          <TryTool server={server} tool={tool} />
          <details className={styles.schema}>
            <summary>{t.schema}</summary>
            <CodeBlock code={JSON.stringify(tool.input_schema, null, 2)} language="json" />
          </details>
        </div>
      )}
    </details>
  )
}
