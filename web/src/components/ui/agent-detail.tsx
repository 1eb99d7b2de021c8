import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { providersQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import { adviceOf, lackOf, providerTitle } from '@/lib/providers'
import styles from './agent-detail.module.css'

/** What answers behind an agent; if that is not set up, what is missing, wherever the agent can be chosen. */
export function AgentDetail({ agent }: { agent: Pick<Agent, 'provider' | 'model'> }): ReactNode {
  const provider = useQuery(providersQuery).data?.find(({ name }) => name === agent.provider)
  const lack = provider ? lackOf(provider) : null
  return (
    <>
      {[providerTitle(agent.provider), agent.model].filter(Boolean).join(' · ')}
      {lack !== null && provider && (
        <>
          {' · '}
          <span className={styles.lack} title={adviceOf(provider)?.replaceAll('`', '') ?? undefined}>
            {lack}
          </span>
        </>
      )}
    </>
  )
}
