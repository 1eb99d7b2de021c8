import { Link } from '@tanstack/react-router'
import { Play } from 'lucide-react'
import type { ReactNode } from 'react'
import { AgentMark } from '@/components/ui/agent-mark'
import { Button } from '@/components/ui/button'
import { Fact } from '@/components/ui/fact'
import type { Agent, Provider } from '@/lib/api/types'
import { askForTask } from '@/lib/execute-request'
import { costText, count, dayTitle, fullTime, percent, shortTime } from '@/lib/format'
import type { AgentFigures } from '../model/figures'
import { adviceOf, lackOf, providerTitle } from '@/lib/providers'
import styles from './agent-card.module.css'
import { AgentMenu } from './agent-menu'
import { t } from '../texts'

interface AgentCardProps {
  agent: Agent
  provider: Provider | undefined
  /** Null until they are known. */
  figures: AgentFigures | null
}

export function AgentCard({ agent, provider, figures }: AgentCardProps): ReactNode {
  const advice = provider ? adviceOf(provider) : null
  const usage = figures?.usage
  return (
    <li className={styles.card}>
      <div className={styles.head}>
        <AgentMark id={agent.id} name={agent.name} />
        <h2 className={styles.name}>
          <Link to="/agents/$agentId" params={{ agentId: agent.id }}>
            {agent.name}
          </Link>
        </h2>
        <Button size="small" className={styles.run} aria-label={t.runATaskWith(agent.name)} onClick={() => askForTask([agent.id])}>
          <Play size={13} aria-hidden />
          {t.runATask}
        </Button>
        <AgentMenu agent={agent} />
      </div>
      <p className={styles.provider}>
        {providerTitle(agent.provider)}
        {agent.model && <> · {agent.model}</>}
      </p>
      {advice !== null && (
        <p className={styles.missing} title={advice}>{t.runsFailUntilItIsSetUp((provider && lackOf(provider)) ?? '')}</p>
      )}
      {agent.system_prompt && <p className={styles.prompt}>{agent.system_prompt}</p>}
      <dl className={styles.figures}>
        {usage && <Fact name={t.answers}>{count(usage.runs)}</Fact>}
        {usage && <Fact name={t.success}>{usage.successRate === null ? '–' : percent(usage.successRate)}</Fact>}
        {usage && <Fact name={t.cost}><Cost usage={usage} /></Fact>}
        <Fact name={t.lastUsed}><LastUsed figures={figures} /></Fact>
      </dl>
    </li>
  )
}

function Cost({ usage }: { usage: NonNullable<AgentFigures['usage']> }): ReactNode {
  return usage.runs === 0 ? '–' : costText(usage)
}

function LastUsed({ figures }: { figures: AgentFigures | null }): ReactNode {
  if (!figures) return '–'
  if (figures.lastUsed === null) return t.neverUsed
  const { at, isDay } = figures.lastUsed
  return (
    <time dateTime={at} title={isDay ? undefined : fullTime(at)}>
      {isDay ? dayTitle(`${at.slice(0, 10)}T12:00:00`) : shortTime(at)}
    </time>
  )
}
