import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Download, Plus, Upload } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { Button } from '@/components/ui/button'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import primaryLink from '@/components/ui/primary-link.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { explain } from '@/lib/api/client'
import type { McpServer } from '@/lib/api/types'
import { useCommands } from '@/lib/commands'
import { download } from '@/lib/download'
import { sentence } from '@/lib/format'
import { notify } from '@/lib/notices'
import { exportServers, serversQuery } from '../api/mcp-api'
import { addressOf, healthOf } from '../model/health'
import { ImportDialog } from './import-dialog'
import { t } from '../texts'
import styles from './mcp-servers.module.css'

export function McpServersPage(): ReactNode {
  const { data, error, refetch } = useQuery(serversQuery)
  const [isImporting, setIsImporting] = useState(false)

  useCommands([{ id: 'import-mcp', title: t.importMcpServersFromMcpJson, group: 'agents', run: () => setIsImporting(true) }])

  return (
    <PageBody
      title={t.mcpServers}
      actions={
        <>
          {data?.servers.some(({ source }) => source === 'database') && (
            <Button look="quiet" title={t.export} onClick={() => void exportAll()}>
              <Download size={15} aria-hidden />
              <span className="visually-hidden-narrow">{t.export}</span>
            </Button>
          )}
          <Button look="quiet" title={t.import} onClick={() => setIsImporting(true)}>
            <Upload size={15} aria-hidden />
            <span className="visually-hidden-narrow">{t.import}</span>
          </Button>
          <Link to="/mcp-servers/new" className={primaryLink.link}>
            <Plus size={15} aria-hidden />
            {t.addAServer}
          </Link>
        </>
      }
    >
      <p className={styles.note}>{t.mcpServersGiveYourAgentsTools}</p>
      {error && !data && <ProblemNote title={t.couldNotLoadMcpServers} error={error} onRetry={() => void refetch()} />}
      {!error && !data && (
        <p className={loading.loading} role="status">
          {t.loading}
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
      {isImporting && <ImportDialog onClose={() => setIsImporting(false)} />}
    </PageBody>
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
    <EmptyState title={t.noMcpServersYet} detail={t.anMcpServerGivesAnAgentTools}>
      <Link to="/mcp-servers/new" className={primaryLink.link}>
        {t.addAServer}
      </Link>
    </EmptyState>
  )
}

async function exportAll(): Promise<void> {
  try {
    download('mcp.json', 'application/json', `${JSON.stringify(await exportServers(), null, 2)}\n`)
  } catch (error) {
    notify(t.nothingWasExported(explain(error)), 'problem')
  }
}
