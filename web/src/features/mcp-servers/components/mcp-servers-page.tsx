import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Download, Plus, Upload } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { PageBar } from '@/components/layout/page-bar'
import { PageColumn } from '@/components/layout/page-column'
import { Button } from '@/components/ui/button'
import primaryLink from '@/components/ui/primary-link.module.css'
import { ApiError, explain } from '@/lib/api/client'
import type { McpServer } from '@/lib/api/types'
import { useCommands } from '@/lib/commands'
import { download } from '@/lib/download'
import { sentence } from '@/lib/format'
import { notify } from '@/lib/notices'
import { setPageTitle } from '@/lib/page-title'
import { exportServers, serversQuery } from '../api/mcp-api'
import { addressOf, healthOf } from '../model/health'
import { ImportDialog } from './import-dialog'
import { t } from '../texts'
import styles from './mcp-servers.module.css'

export function McpServersPage(): ReactNode {
  const { data, error, refetch } = useQuery(serversQuery)
  const [isImporting, setIsImporting] = useState(false)

  useEffect(() => {
    setPageTitle(t.mcpServers)
  }, [])

  useCommands([{ id: 'import-mcp', title: t.importMcpServersFromMcpJson, group: 'agents', run: () => setIsImporting(true) }])

  return (
    <>
      <PageBar
        actions={
          <Link to="/mcp-servers/new" className={primaryLink.link}>
            <Plus size={15} aria-hidden />
            {t.addAServer}
          </Link>
        }
      >
        <h1 className={styles.title}>{t.mcpServers}</h1>
      </PageBar>
      <PageColumn className={styles.page}>
        <div className={styles.bar}>
          <p className={styles.note}>{t.mcpServersGiveYourAgentsTools}</p>
          <div className={styles.actions}>
            <Button look="quiet" onClick={() => setIsImporting(true)}>
              <Upload size={15} aria-hidden />
              {t.import}
            </Button>
            {data && data.servers.some(({ source }) => source === 'database') && (
              <Button look="quiet" onClick={() => void exportAll()}>
                <Download size={15} aria-hidden />
                {t.export}
              </Button>
            )}
          </div>
        </div>
        {error && !data && <Unreadable error={error} onRetry={() => void refetch()} />}
        {!error && !data && (
          <p className={styles.note} role="status">
            {t.reading}
          </p>
        )}
        {data?.servers.length === 0 && <Empty />}
        {data && data.servers.length > 0 && (
          <ul className={styles.list}>
            {data.servers.map((server) => (
              <Row key={`${server.name} ${server.source}`} server={server} />
            ))}
          </ul>
        )}
      </PageColumn>
      {isImporting && <ImportDialog onClose={() => setIsImporting(false)} />}
    </>
  )
}

function Row({ server }: { server: McpServer }): ReactNode {
  const health = healthOf(server)
  const name = <strong>{server.name}</strong>
  return (
    <li className={styles.row}>
      <div className={styles.head}>
        {server.shadowed ? name : <Link to="/mcp-servers/$name" params={{ name: server.name }} className={styles.name}>{name}</Link>}
        <span className={styles.kind}>{server.type}</span>
        {server.source === 'file' && <span className={styles.kind}>{t.fromTheServersFile}</span>}
        <span className={styles.health} data-tone={health.tone}>
          {health.words}
        </span>
      </div>
      <code className={styles.address}>{addressOf(server) || t.addressHidden}</code>
      {health.detail && (
        <p className={styles.detail} data-tone={health.tone}>
          {sentence(health.detail)}
        </p>
      )}
    </li>
  )
}

function Empty(): ReactNode {
  return (
    <div className={styles.empty}>
      <h2>{t.noMcpServersYet}</h2>
      <p>{t.anMcpServerGivesAnAgentTools}</p>
      <Link to="/mcp-servers/new" className={primaryLink.link}>
        {t.addAServer}
      </Link>
    </div>
  )
}

function Unreadable({ error, onRetry }: { error: Error; onRetry: () => void }): ReactNode {
  const isOld = error instanceof ApiError && error.status === 404
  return (
    <div className={styles.empty} role="alert">
      <h2>{isOld ? t.thisServerDoesNotSupportMcpServers : t.couldNotLoadMcpServers}</h2>
      <p>{isOld ? t.updateTheServer : explain(error)}</p>
      <Button onClick={onRetry}>{t.tryAgain}</Button>
    </div>
  )
}

async function exportAll(): Promise<void> {
  try {
    download('mcp.json', 'application/json', `${JSON.stringify(await exportServers(), null, 2)}\n`)
  } catch (error) {
    notify(t.nothingWasExported(explain(error)), 'problem')
  }
}
