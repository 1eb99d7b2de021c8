// What the address of a page may say behind its `?`; anything else is passed over.
import { type TemplateId, isTemplateId } from '@/lib/agent-templates'

type Search = Record<string, unknown>

/** `m` is the journal number of the message that a link points to. */
export function readRoomSearch(search: Search): { m?: number } {
  const m = Number(search.m)
  return Number.isSafeInteger(m) && m > 0 ? { m } : {}
}

/** `from` is the agent that the new one is to be like, `template` what it begins with. */
export function readNewAgent({ from, provider, template }: Search): { from?: string; provider?: string; template?: TemplateId } {
  return {
    ...(isTemplateId(template) ? { template } : {}),
    ...(typeof from === 'string' ? { from } : {}),
    ...(typeof provider === 'string' ? { provider } : {}),
  }
}

export function readAgentView({ test, show }: Search): { test?: true; show?: 'effective' | 'memory' } {
  return {
    ...(test === true ? { test } : {}),
    ...(show === 'effective' || show === 'memory' ? { show } : {}),
  }
}

export function readMcpServerView({ show }: Search): { show?: 'settings' | 'logs' } {
  return show === 'settings' || show === 'logs' ? { show } : {}
}
