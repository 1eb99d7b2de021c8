import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { answerOf, api, explain } from '@/lib/api/client'
import { agentsQuery, providersQuery, roomsQuery } from '@/lib/api/queries'
import type { Provider } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { createRoom } from '../api/room-commands'
import { WithCode } from '@/components/ui/with-code'
import { t } from '../texts'
import styles from './real-agents.module.css'

/** One sentence on how to get an agent with a model behind it, from what this machine was found to have. */
export function RealAgents(): ReactNode {
  const providers = (useQuery(providersQuery).data ?? []).filter((provider) => provider.name !== 'scripted')
  const ready = providers.flatMap(({ name, inspection }) => (inspection.state === 'ready' ? [{ name, version: inspection.version }] : []))
  const missing = inOrder(providers).flatMap(({ inspection }) => (inspection.state === 'missing' ? [inspection.advice] : []))
  const queries = useQueryClient()
  const navigate = useNavigate()

  const add = useMutation({
    mutationFn: async (provider: string) => {
      const agent = await answerOf(api.POST('/api/agents', { body: { name: provider, provider } }))
      return createRoom({ name: provider, agents: [agent.id], whenBusy: 'enqueue' })
    },
    onSuccess: async (room) => {
      await Promise.all([queries.invalidateQueries(agentsQuery), queries.invalidateQueries(roomsQuery)])
      await navigate({ to: '/rooms/$roomId', params: { roomId: room.id } })
    },
    onError: (error) => notify(explain(error), 'problem'),
  })

  if (ready.length > 0) {
    return (
      <div className={styles.real}>
        <p>{t.chatWithAnAgentThatIsInstalled}</p>
        <div className={styles.row}>
          {ready.map(({ name, version }) => (
            <Button key={name} isBusy={add.isPending && add.variables === name} onClick={() => add.mutate(name)}>
              {titles[name] ?? name}
              {version && <span className={styles.version}>{version}</span>}
            </Button>
          ))}
          <Link to="/agents/new" className={styles.own}>
            {t.createAnAgent}
          </Link>
        </div>
      </div>
    )
  }
  return (
    <p className={styles.real}>
      {missing[0] ? (
        <>{t.connectARealAgent} {withCode(missing[0])}</>
      ) : (
        <><WithCode text={t.toConnectARealAgentRunGreenroom} /></>
      )}{' '}
      <Link to="/agents/new">{t.createAnAgent}</Link>
    </p>
  )
}

const titles: Record<string, string> = { claude_code: 'Claude Code', codex: 'Codex', gemini: 'Gemini CLI' }

/** Those that most people have come first. */
function inOrder(providers: Provider[]): Provider[] {
  const known = Object.keys(titles)
  const rank = ({ name }: Provider): number => (known.includes(name) ? known.indexOf(name) : known.length)
  return providers.toSorted((a, b) => rank(a) - rank(b))
}

/** Advice of the server sets commands in backticks. */
function withCode(text: string): ReactNode[] {
  return text.split('`').map((piece, index) => (index % 2 === 1 ? <code key={index}>{piece}</code> : piece))
}
