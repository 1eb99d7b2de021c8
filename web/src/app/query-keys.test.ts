import { QueryClient } from '@tanstack/react-query'
import { afterEach, expect, it, vi } from 'vitest'
import { mcpServerNamesQuery } from '@/features/agents/api/agent-queries'
import { logsQuery, serverQuery, serversQuery, toolsQuery } from '@/features/mcp-servers/api/mcp-api'
import { api } from '@/lib/api/client'

afterEach(() => vi.restoreAllMocks())

it('an MCP server named `names` is not mixed up with the list of names', async () => {
  const server = { name: 'names', type: 'stdio' }
  vi.spyOn(api, 'GET').mockResolvedValue({ data: server, response: new Response() } as never)
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } })
  client.setQueryData(mcpServerNamesQuery.queryKey, ['names'])
  expect(await client.fetchQuery(serverQuery('names'))).toEqual(server)
})

it('no name of an MCP server makes two queries share a cache entry', () => {
  const names = ['names', 'one', 'tools', 'logs', 'list', 'small']
  const queries = [serversQuery, mcpServerNamesQuery, ...names.flatMap((name) => [serverQuery(name), toolsQuery(name), logsQuery(name)])]
  const keys = queries.map(({ queryKey }) => JSON.stringify(queryKey))
  expect(new Set(keys).size).toBe(keys.length)
})
