import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { PageBody } from '@/components/layout/page-body'
import loading from '@/components/ui/loading.module.css'
import { Segmented } from '@/components/ui/segmented'
import { ApiError, explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { McpServer } from '@/lib/api/types'
import { sentence } from '@/lib/format'
import { notify } from '@/lib/notices'
import { changeServer, createServer, serverQuery, serversQuery } from '../api/mcp-api'
import { type EntryDraft, draftOf, entryOf, withoutNulls } from '../model/entry-draft'
import { addressOf, healthOf } from '../model/health'
import { problemOf } from '../model/problems'
import styles from './mcp-server-page.module.css'
import { MissingVariables } from './missing-variables'
import { ServerActions } from './server-actions'
import { ServerForm } from './server-form'
import { ServerLogs } from './server-logs'
import { ServerTools } from './server-tools'
import { t } from '../texts'

export type ServerView = 'tools' | 'settings' | 'logs'

const views = [
  { value: 'tools', get label() { return t.tools } },
  { value: 'settings', get label() { return t.settings } },
  { value: 'logs', get label() { return t.logs } },
] as const

export function McpServerPage({ name, view }: { name: string; view: ServerView }): ReactNode {
  const { data: server, error } = useQuery(serverQuery(name))
  const navigate = useNavigate()
  const isGone = error instanceof ApiError && error.status === 404
  return (
    <Frame title={name} actions={server && <ServerActions server={server} />}>
      {!server && !error && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
      {!server && error && <p role="alert">{isGone ? t.mcpServerNotFound : explain(error)}</p>}
      {server && (
        <>
          <Summary server={server} />
          <Segmented
            label={t.whatToShow}
            choices={views}
            value={view}
            onChange={(show) => void navigate({ to: '/mcp-servers/$name', params: { name }, search: show === 'tools' ? {} : { show }, replace: true })}
          />
          {view === 'tools' && <ServerTools server={server} />}
          {view === 'logs' && <ServerLogs name={name} />}
          {view === 'settings' && <Settings server={server} />}
        </>
      )}
    </Frame>
  )
}

function Summary({ server }: { server: McpServer }): ReactNode {
  const health = healthOf(server)
  const { status } = server
  return (
    <div className={styles.summary}>
      <p className={styles.health} data-tone={health.tone}>
        {health.words}
      </p>
      <code>{addressOf(server)}</code>
      {health.detail && <p className={styles.detail}>{sentence(health.detail)}</p>}
      <MissingVariables server={server} />
      {status && (
        <p className={styles.note}>
          {status.server ? `${status.server.title ?? status.server.name} ${status.server.version}. ` : ''}
          {status.restarts > 0 && t.restarted(status.restarts === 1 ? t.once : t.times(status.restarts))}
          {status.calls > 0 && t.failedWith(status.calls, status.calls === 1 ? t.call : t.calls, status.failures)}
        </p>
      )}
    </div>
  )
}

function Settings({ server }: { server: McpServer }): ReactNode {
  const save = useSave((draft) => changeServer(server.name, entryOf(draft)), () => notify(t.saved))
  if (!server.editable) {
    return <p className={styles.note}>{t.thisOneStandsInTheFileOf}</p>
  }
  return (
    <ServerForm
      // Resets the form after a save, so that typed secrets are not shown again.
      key={server.updated_at}
      initial={draftOf(server)}
      isNew={false}
      mayStartPrograms
      problem={save.error && problemOf(save.error)}
      isBusy={save.isPending}
      onSave={save.mutate}
    />
  )
}

export function NewMcpServerPage(): ReactNode {
  const navigate = useNavigate()
  const save = useSave(
    (draft) => createServer(draft.name.trim(), withoutNulls(entryOf(draft))),
    (created) => void navigate({ to: '/mcp-servers/$name', params: { name: created.name } }),
  )
  const mayStartPrograms = useQuery(serversQuery).data?.may_define_stdio ?? true
  return (
    <Frame title={t.newMcpServer}>
      <ServerForm initial={draftOf(null)} isNew mayStartPrograms={mayStartPrograms} problem={save.error && problemOf(save.error)} isBusy={save.isPending} onSave={save.mutate} />
    </Frame>
  )
}

function useSave(write: (draft: EntryDraft) => Promise<McpServer>, then: (saved: McpServer) => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: write,
    onSuccess: async (saved) => {
      then(saved)
      // Its tools and logs belong to the old settings.
      await queries.invalidateQueries({ queryKey: queryKeys.mcpServers.all })
    },
  })
}

function Frame({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }): ReactNode {
  return (
    <PageBody title={title} width="narrow" back={<Link to="/mcp-servers">{t.mcpServers}</Link>} actions={actions}>
      {children}
    </PageBody>
  )
}
