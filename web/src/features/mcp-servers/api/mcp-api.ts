import { queryOptions } from '@tanstack/react-query'
import { answerOf, api, once } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { McpCallResult, McpExport, McpFile, McpImported, McpServer, McpServerConfig, McpTestReport, MergePatch } from '@/lib/api/types'

/** Health changes on its own, so it is polled while visible. */
export const serversQuery = queryOptions({
  queryKey: queryKeys.mcpServers.all,
  refetchInterval: 5000,
  queryFn: () => answerOf(api.GET('/api/mcp-servers')),
})

export function serverQuery(name: string) {
  return queryOptions({
    queryKey: queryKeys.mcpServers.one(name),
    refetchInterval: 5000,
    queryFn: () => answerOf(api.GET('/api/mcp-servers/{name}', { params: { path: { name } } })),
  })
}

/** The request starts the server, so it is not refetched automatically. */
export function toolsQuery(name: string) {
  return queryOptions({
    queryKey: queryKeys.mcpServers.tools(name),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
    // A server that does not start fails with 502 each time; the reason must be shown at once.
    retry: false,
    queryFn: () => answerOf(api.GET('/api/mcp-servers/{name}/tools', { params: { path: { name } } })),
  })
}

export function logsQuery(name: string) {
  return queryOptions({
    queryKey: queryKeys.mcpServers.logs(name),
    refetchInterval: 3000,
    queryFn: () => answerOf(api.GET('/api/mcp-servers/{name}/logs', { params: { path: { name } } })),
  })
}

export function createServer(name: string, config: McpServerConfig): Promise<McpServer> {
  return answerOf(api.POST('/api/mcp-servers', { params: { header: once() }, body: { name, ...config } }))
}

export function changeServer(name: string, patch: MergePatch<McpServerConfig>): Promise<McpServer> {
  // The document describes the settings; that `null` clears any of them is the meaning of a merge patch.
  const body = patch as McpServerConfig
  return answerOf(api.PATCH('/api/mcp-servers/{name}', { params: { path: { name }, header: once() }, body }))
}

export async function deleteServer(name: string): Promise<void> {
  await answerOf(api.DELETE('/api/mcp-servers/{name}', { params: { path: { name }, header: once() } }))
}

export function testServer(name: string): Promise<McpTestReport> {
  return answerOf(api.POST('/api/mcp-servers/{name}/test', { params: { path: { name } } }))
}

/** Lets the settings of the operator's servers use a variable of the server's environment. */
export async function allowVariable(name: string): Promise<void> {
  await answerOf(api.PUT('/api/mcp-variables/{name}', { params: { path: { name } } }))
}

export function callTool(name: string, tool: string, args: Record<string, unknown>): Promise<McpCallResult> {
  // The document says of the arguments only that they are an object.
  const body = { tool, arguments: args as Record<string, never> }
  return answerOf(api.POST('/api/mcp-servers/{name}/call', { params: { path: { name } }, body }))
}

/** `file` is any JSON: the server says what is wrong with it. */
export async function importServers(file: unknown, replace: boolean): Promise<McpImported[]> {
  const body = file as McpFile
  return (await answerOf(api.POST('/api/mcp-servers/import', { params: { query: { replace }, header: once() }, body }))).servers
}

export function exportServers(): Promise<McpExport> {
  return answerOf(api.GET('/api/mcp-servers/export'))
}
