import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { RefreshCw } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { WithCode } from '@/components/ui/with-code'
import { answerOf, api, explain } from '@/lib/api/client'
import { agentsQuery, providersQuery, roomsQuery } from '@/lib/api/queries'
import type { Provider } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { adviceOf, inOrder, isReady, providerTitle, versionOf } from '@/lib/providers'
import { createRoom } from '../api/room-commands'
import { t } from '../texts'
import styles from './real-agents.module.css'

/** As many as a newcomer can choose from; the page of a new agent has all. */
const mostShown = 5

/** The agents with a model behind them: those that this machine has, to chat with; of the others, the one thing to do. */
export function RealAgents(): ReactNode {
  const { data, isFetching, refetch } = useQuery(providersQuery)
  const providers = inOrder((data ?? []).filter(({ name }) => name !== 'scripted'))
  const queries = useQueryClient()
  const navigate = useNavigate()

  const chat = useMutation({
    mutationFn: async (provider: string) => {
      const name = providerTitle(provider)
      const agents = await queries.fetchQuery(agentsQuery)
      const agent = agents.find((one) => one.provider === provider) ?? (await answerOf(api.POST('/api/agents', { body: { name, provider } })))
      return createRoom({ name, agents: [agent.id] })
    },
    onSuccess: async (room) => {
      await Promise.all([queries.invalidateQueries(agentsQuery), queries.invalidateQueries(roomsQuery)])
      await navigate({ to: '/rooms/$roomId', params: { roomId: room.id } })
    },
    onError: (error) => notify(explain(error), 'problem'),
  })

  return (
    <>
      <ul className={styles.list}>
        {providers.slice(0, mostShown).map((provider) => (
          <ProviderLine key={provider.name} provider={provider} isBusy={chat.isPending && chat.variables === provider.name} onChat={() => chat.mutate(provider.name)} />
        ))}
      </ul>
      <div className={styles.row}>
        <Button size="small" look="quiet" isBusy={isFetching} onClick={() => void refetch()}>
          <RefreshCw size={13} aria-hidden />
          {isFetching ? t.checking : t.checkAgain}
        </Button>
        {providers.length > mostShown && <Link to="/agents/new">{t.moreProviders(providers.length - mostShown)}</Link>}
      </div>
    </>
  )
}

function ProviderLine({ provider, isBusy, onChat }: { provider: Provider; isBusy: boolean; onChat: () => void }): ReactNode {
  const title = providerTitle(provider.name)
  return (
    <li className={styles.provider} data-missing={!isReady(provider) || undefined}>
      <span className={styles.title}>
        <strong>{title}</strong> {versionOf(provider)}
      </span>
      {isReady(provider) ? (
        <Button size="small" look="primary" isBusy={isBusy} onClick={onChat} aria-label={t.chatWith(title)}>
          {t.chat}
        </Button>
      ) : (
        <span className={styles.advice}>
          <WithCode text={adviceOf(provider) ?? ''} />
        </span>
      )}
    </li>
  )
}
