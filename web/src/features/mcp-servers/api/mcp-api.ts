import { queryOptions } from '@tanstack/react-query'
import { queryKeys } from '@/lib/api/query-keys'
import { request } from '@/lib/api/request'
import type { CallResult, Entry, ImportOutcome, Listing, Logs, McpServer, TestReport } from '../model/types'

const base = '/api/mcp-servers'
const at = (name: string, door = ''): string => `${base}/${encodeURIComponent(name)}${door}`

/** Health changes on its own, so it is polled while visible. */
export const serversQuery = queryOptions({
  queryKey: queryKeys.mcpServers.all,
  refetchInterval: 5000,
  queryFn: () => request<{ servers: McpServer[]; may_define_stdio: boolean }>('GET', base),
})

export function serverQuery(name: string) {
  return queryOptions({ queryKey: queryKeys.mcpServers.one(name), refetchInterval: 5000, queryFn: () => request<McpServer>('GET', at(name)) })
}

/** The request starts the server, so it is not refetched automatically. */
export function toolsQuery(name: string) {
  return queryOptions({
    queryKey: queryKeys.mcpServers.tools(name),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
    queryFn: () => request<Listing>('GET', at(name, '/tools')),
  })
}

export function logsQuery(name: string) {
  return queryOptions({ queryKey: queryKeys.mcpServers.logs(name), refetchInterval: 3000, queryFn: () => request<Logs>('GET', at(name, '/logs')) })
}

export function createServer(name: string, entry: Partial<Entry>): Promise<McpServer> {
  return request('POST', base, { name, ...entry })
}

/** A merge patch: `null` clears. */
export function changeServer(name: string, patch: Record<string, unknown>): Promise<McpServer> {
  return request('PATCH', at(name), patch)
}

export function deleteServer(name: string): Promise<void> {
  return request('DELETE', at(name))
}

export function testServer(name: string): Promise<TestReport> {
  return request('POST', at(name, '/test'))
}

export function callTool(name: string, tool: string, args: Record<string, unknown>): Promise<CallResult> {
  return request('POST', at(name, '/call'), { tool, arguments: args })
}

export async function importServers(file: unknown, replace: boolean): Promise<ImportOutcome[]> {
  return (await request<{ servers: ImportOutcome[] }>('POST', `${base}/import${replace ? '?replace=true' : ''}`, file)).servers
}

export function exportServers(): Promise<unknown> {
  return request('GET', `${base}/export`)
}
