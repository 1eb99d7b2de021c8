import { useQuery } from '@tanstack/react-query'
import { RefreshCw } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import notes from '@/components/ui/note-box.module.css'
import { Select } from '@/components/ui/select'
import textStyles from '@/components/ui/text.module.css'
import { explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import { sentence } from '@/lib/format'
import { effectiveQuery } from '../api/agent-queries'
import { type Effective, type EffectiveServer, type EffectiveTool, originOf, stateOf, stateWords, tierWords, verdictWords } from '../model/effective'
import { providerTitle } from '@/lib/providers'
import { t } from '../texts'
import styles from './effective-view.module.css'

/** What the agent really has to work with, and where each of it comes from. */
export function EffectiveView({ agent, isChanged }: { agent: Agent; isChanged: boolean }): ReactNode {
  const [room, setRoom] = useState<string | null>(null)
  const rooms = (useQuery(roomsQuery).data ?? []).filter(({ agents }) => agents.includes(agent.id))
  const { data, error, isFetching, refetch } = useQuery(effectiveQuery(agent, room))
  return (
    <div className={styles.view}>
      {rooms.length > 0 && (
        <div className={styles.where}>
          <Select
            label={t.inTheRoom}
            value={room ?? ''}
            options={[{ value: '', label: t.noSpecificRoom }, ...rooms.map(({ id, name }) => ({ value: id, label: name }))]}
            onChange={(id) => setRoom(id || null)}
          />
        </div>
      )}
      <div className={styles.head}>
        <p className={textStyles.note}>
          {t.theToolsItHasInARun}{isChanged && t.yourUnsavedChangesAreNotIncluded}
        </p>
        <Button size="small" look="quiet" isBusy={isFetching} onClick={() => void refetch()}>
          <RefreshCw size={13} aria-hidden />
          {isFetching ? t.loading : t.reload}
        </Button>
      </div>
      {data === undefined && !error && (
        <p className={textStyles.note} role="status">
          {t.loadingToolsFromItsServersServersThat}
        </p>
      )}
      {error && !data && (
        <p className={textStyles.longProblem} role="alert">
          {explain(error)}
        </p>
      )}
      {data && <Tiers effective={data} />}
    </div>
  )
}

function Tiers({ effective }: { effective: Effective }): ReactNode {
  const { provider, servers, built_in: own } = effective
  return (
    <>
      {!provider.mcp && (
        <p className={notes.warning}>{t.usesNoMcpServersWhatIsListed(providerTitle(provider.name))}</p>
      )}
      {own.length > 0 && (
        <section className={styles.server} aria-label={t.greenroomsOwnTools}>
          <h2>Greenroom</h2>
          <p className={textStyles.note}>{t.builtInForEveryAgentWhoseProvider}</p>
          <Tools tools={own} />
        </section>
      )}
      {servers.map((server) => (
        <Server key={`${server.tier} ${server.name}`} server={server} />
      ))}
      {servers.length === 0 && <p className={textStyles.note}>{t.noMcpServersInTheAgentIts}</p>}
      <p className={textStyles.note}>{t.toolsThatHasBuiltInSuchAs(providerTitle(provider.name))}</p>
    </>
  )
}

function Server({ server }: { server: EffectiveServer }): ReactNode {
  return (
    <section className={styles.server} aria-label={t.mcpServer(server.name)}>
      <h2>
        {server.name}
        <span className={styles.state} data-state={stateOf(server)}>
          {stateWords[stateOf(server)]}
        </span>
        {server.transport && <span className={styles.transport}>{server.transport}</span>}
      </h2>
      <p className={textStyles.note}>
        {originOf(server)}
        {server.shadowed.length > 0 && t.overridesTheOne(server.shadowed.map(tierWords).join(' and the one '))}
      </p>
      {server.problem && <p className={textStyles.longProblem}>{sentence(server.problem.message)}</p>}
      {server.state === 'untrusted' && <p className={textStyles.note}>{t.notUsedUntilSomeoneTrustsTheFile}</p>}
      {server.tools && <Tools tools={server.tools} />}
    </section>
  )
}

function Tools({ tools }: { tools: readonly EffectiveTool[] }): ReactNode {
  if (tools.length === 0) return <p className={textStyles.note}>{t.noTools}</p>
  return (
    <ul className={styles.tools}>
      {tools.map((tool) => (
        <li key={tool.full_name}>
          <code title={tool.full_name}>{tool.name}</code>
          <span className={styles.description}>{tool.quarantined ? t.blocked(tool.quarantined) : tool.description}</span>
          <span className={styles.verdict} data-verdict={tool.quarantined ? 'deny' : tool.verdict}>
            {tool.quarantined ? t.blockedTitle : tool.remembered ? t.allowedInThisRoom : verdictWords[tool.verdict]}
          </span>
        </li>
      ))}
    </ul>
  )
}
