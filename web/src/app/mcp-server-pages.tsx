import { getRouteApi } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { McpServerPage } from '@/features/mcp-servers/components/mcp-server-page'

export { NewMcpServerPage } from '@/features/mcp-servers/components/mcp-server-page'
export { McpServersPage } from '@/features/mcp-servers/components/mcp-servers-page'

const one = getRouteApi('/mcp-servers/$name')

export function McpServerRoute(): ReactNode {
  const { name } = one.useParams()
  return <McpServerPage key={name} name={name} view={one.useSearch().show ?? 'tools'} />
}
