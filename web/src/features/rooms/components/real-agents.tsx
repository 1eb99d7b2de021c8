import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { RefreshCw } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ProviderKeyForm } from '@/components/ui/provider-key-form'
import { WithCode } from '@/components/ui/with-code'
import { answerOf, api, explain } from '@/lib/api/client'
import { modelsQuery } from '@/lib/api/provider-settings'
import { agentsQuery, providersQuery, roomsQuery } from '@/lib/api/queries'
import type { Provider } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { adviceOf, inOrder, isReady, versionOf } from '@/lib/providers'
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
    mutationFn: async ({ id: provider, label: name, kind, default_model: usual }: Provider) => {
      const agents = await queries.fetchQuery(agentsQuery)
      // An API needs to be told a model; programs have one of their own.
      const listed = kind === 'program' || usual ? [] : await queries.fetchQuery(modelsQuery(provider)).catch(() => [])
      const model = listed[0]?.id
      const agent = agents.find((one) => one.provider === provider) ?? (await answerOf(api.POST('/api/agents', { body: { name, provider, model } })))
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
          <ProviderLine key={provider.id} provider={provider} all={providers} isBusy={chat.isPending && chat.variables.id === provider.id} onChat={() => chat.mutate(provider)} />
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

interface ProviderLineProps {
  provider: Provider
  all: readonly Provider[]
  isBusy: boolean
  onChat: () => void
}

function ProviderLine({ provider, all, isBusy, onChat }: ProviderLineProps): ReactNode {
  const [isTyping, setIsTyping] = useState(false)
  // The key of a program is that of the API that it calls.
  const keyOwner = all.find(({ id }) => id === (provider.settings_provider ?? provider.id))
  const needsKey = provider.state === 'needs_key' && keyOwner !== undefined
  const { label } = provider
  return (
    <li className={styles.provider} data-missing={!isReady(provider) || undefined}>
      <span className={styles.title}>
        <strong>{label}</strong> {versionOf(provider)}
      </span>
      {isReady(provider) && (
        <Button size="small" look="primary" isBusy={isBusy} onClick={onChat} aria-label={t.chatWith(label)}>
          {t.chat}
        </Button>
      )}
      {needsKey && !isTyping && (
        <Button size="small" onClick={() => setIsTyping(true)} aria-label={t.addAKeyFor(label)}>
          {t.addAKey}
        </Button>
      )}
      {!isReady(provider) && !needsKey && (
        <span className={styles.advice}>
          <WithCode text={adviceOf(provider) ?? ''} />
        </span>
      )}
      {keyOwner && isTyping && !isReady(provider) && <ProviderKeyForm provider={keyOwner} />}
    </li>
  )
}
