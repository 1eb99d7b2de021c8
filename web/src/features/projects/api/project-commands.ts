import { queryOptions } from '@tanstack/react-query'
import { answerOf, api } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { ProjectCommand, ProjectPort } from '@/lib/api/types'

/** People and agents start commands, so the list is read again while it is seen. */
export function commandsQuery(id: string) {
  return queryOptions({
    queryKey: queryKeys.projects.commands(id),
    queryFn: async (): Promise<ProjectCommand[]> => (await answerOf(api.GET('/api/projects/{id}/commands', { params: { path: { id } } }))).commands,
    refetchInterval: 5000,
  })
}

/** Runs a line in the sandbox, as long as the sandbox does; its output is followed apart from that. */
export async function startCommand(id: string, command: string): Promise<ProjectCommand> {
  return (await answerOf(api.POST('/api/projects/{id}/commands', { params: { path: { id } }, body: { command, background: true } }))) as ProjectCommand
}

export async function stopCommand(id: string, command: string): Promise<void> {
  await answerOf(api.DELETE('/api/projects/{id}/commands/{command}', { params: { path: { id, command } } }))
}

export function portsQuery(id: string) {
  return queryOptions({
    queryKey: queryKeys.projects.ports(id),
    queryFn: async (): Promise<ProjectPort[]> => (await answerOf(api.GET('/api/projects/{id}/ports', { params: { path: { id } } }))).ports,
    refetchInterval: 5000,
    retry: false,
  })
}

/** The address of a preview, which works with the access of who asked for it. */
export async function openPreview(id: string, port: number): Promise<string> {
  return (await answerOf(api.POST('/api/projects/{id}/ports/{port}/preview', { params: { path: { id, port } } }))).url
}

interface CommandListener {
  onOutput: (text: string) => void
  onEnd: (command: ProjectCommand) => void
}

/** The output so far, then what comes, to the end. The browser reconnects where it was. */
export function followCommand(id: string, command: string, { onOutput, onEnd }: CommandListener): () => void {
  const source = new EventSource(`/api/projects/${id}/commands/${command}/stream`)
  const dataOf = (event: Event): unknown => JSON.parse((event as MessageEvent<string>).data)
  source.addEventListener('output', (event) => onOutput((dataOf(event) as { text: string }).text))
  source.addEventListener('ended', (event) => {
    source.close()
    onEnd(dataOf(event) as ProjectCommand)
  })
  return () => source.close()
}
