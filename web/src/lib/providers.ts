import type { Provider } from './api/types'
import { t } from './texts'

const titles: Record<string, string> = {
  claude_code: 'Claude Code',
  codex: 'Codex',
  gemini: 'Gemini CLI',
  anthropic: 'Anthropic API',
  openai: 'OpenAI API',
  openai_responses: 'OpenAI Responses API',
  google: 'Gemini API',
  opencode: 'OpenCode',
  copilot: 'Copilot CLI',
  cursor: 'Cursor',
  goose: 'Goose',
  qwen: 'Qwen Code',
  vibe: 'Mistral Vibe',
  'claude-agent-acp': 'Claude Agent over ACP',
  'codex-acp': 'Codex over ACP',
  get scripted() { return t.demoAgent },
}

const order = Object.keys(titles)

export function providerTitle(name: string): string {
  return titles[name] ?? name
}

export function isReady(provider: Provider): boolean {
  return provider.state === 'ready'
}

/** What is missing, in a word or two; `null` if it can answer. */
export function lackOf(provider: Provider): string | null {
  const words = { ready: null, needs_key: t.apiKeyMissing, not_installed: t.notInstalled, unreachable: t.unreachable, not_allowed: t.notAllowed }
  return words[provider.state]
}

/** What is there before what is not; those that most people have come first. */
export function inOrder(providers: readonly Provider[]): Provider[] {
  const rank = (provider: Provider): number => {
    const known = order.indexOf(provider.name)
    return (isReady(provider) ? 0 : 1000) + (known < 0 ? 500 : known)
  }
  return providers.toSorted((a, b) => rank(a) - rank(b))
}

/** A newcomer most likely wants a model behind the agent, if this machine can give them one. */
export function firstChoice(providers: readonly Provider[]): string {
  return inOrder(providers).find(isReady)?.name ?? 'scripted'
}

export function versionOf({ inspection }: Provider): string | null {
  return inspection.state === 'ready' ? (inspection.version ?? null) : null
}

/** The one thing to do before it can answer. */
export function adviceOf({ hint }: Provider): string | null {
  return hint ?? null
}

/** What it can do beyond answering, in a few words each. */
export function abilitiesOf({ capabilities }: Provider): string[] {
  return [
    capabilities.approvals && t.approvals,
    capabilities.thinking && t.thinking,
    capabilities.resume && t.sessions,
    capabilities.steer && t.steering,
    capabilities.skills && t.skills,
    capabilities.mcp && t.mcpServers,
  ].filter((ability) => ability !== false)
}
