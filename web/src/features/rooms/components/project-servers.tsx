import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import textStyles from '@/components/ui/text.module.css'
import { explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import { sentence } from '@/lib/format'
import { type ProjectServers as Project, distrustProject, projectServers, trustProject } from '../api/room-commands'
import { t } from '../texts'
import styles from './project-servers.module.css'

/** What the `.mcp.json` in the room's folder would start, and whether it may. */
export function ProjectServers({ roomId }: { roomId: string }): ReactNode {
  const queries = useQueryClient()
  const queryKey = queryKeys.rooms.mcpTrust(roomId)
  // An agent may have changed the file a moment ago.
  const { data: project, error } = useQuery({ queryKey, queryFn: () => projectServers(roomId), staleTime: 0 })
  const decide = useMutation({
    mutationFn: async (digest: string | null): Promise<void> => void (await (digest === null ? distrustProject(roomId) : trustProject(roomId, digest))),
    // Also after a refusal: the file is another by now, and that one is to be looked at.
    onSettled: () => queries.invalidateQueries({ queryKey }),
  })
  if (error && !project) return <p className={textStyles.longProblem}>{t.couldNotCheckThisRoomsFolderFor(explain(error))}</p>
  if (!project || project.state === 'none') return null
  const { state, digest, servers } = project
  return (
    <fieldset className={styles.project}>
      <legend>{t.mcpServersInThisRoomsFolder}</legend>
      <p className={textStyles.note}>{words(project)}</p>
      {servers.length > 0 && (
        <ul className={styles.servers} aria-label={t.inItsMcpJson}>
          {servers.map((server) => (
            <li key={server.name}>
              <strong>{server.name}</strong>
              {server.disabled && <span className={textStyles.note}>{t.off}</span>}
              <code>{commandOf(server)}</code>
              {keysOf(server) !== '' && <span className={textStyles.note}>{t.gets(keysOf(server))}</span>}
              {server.problem && <p className={textStyles.longProblem}>{sentence(server.problem.message)}</p>}
            </li>
          ))}
        </ul>
      )}
      {decide.error && (
        <p className={textStyles.longProblem} role="alert">
          {sentence(explain(decide.error))}
        </p>
      )}
      {state === 'untrusted' && digest && (
        <Button size="small" isBusy={decide.isPending} onClick={() => decide.mutate(digest)}>
          {t.trustTheseServers}
        </Button>
      )}
      {state === 'trusted' && (
        <Button size="small" isBusy={decide.isPending} onClick={() => decide.mutate(null)}>
          {t.stopTrusting}
        </Button>
      )}
    </fieldset>
  )
}

function words({ state, problem }: Project): string {
  switch (state) {
    case 'trusted':
      return t.trustedAgentsInThisRoomUseThese
    case 'unreadable':
      return sentence(t.itsMcpJsonIsNotUsed(problem ?? t.itCannotBeRead))
    default:
      return t.anyoneWhoCanWriteToTheFolder
  }
}

/** To the letter: where an argument ends must not be a matter of guessing. */
function commandOf({ command, args, url, cwd }: Project['servers'][number]): string {
  const parts = [command, ...(args ?? []), url].filter((word) => typeof word === 'string')
  const line = parts.map((word) => (/^[!-~]+$/.test(word) ? word : JSON.stringify(word))).join(' ')
  return cwd ? t.inWith2(line, cwd) : line
}

/** Only the names: values are never shown. */
function keysOf({ env, headers }: Project['servers'][number]): string {
  return Object.keys({ ...env, ...headers }).join(', ')
}
