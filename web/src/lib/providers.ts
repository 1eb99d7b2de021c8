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
  return provider.inspection.state === 'ready'
}

/** What is missing, in a word or two; `null` if it can answer. */
export function lackOf(provider: Provider): string | null {
  if (isReady(provider)) return null
  return isApi(provider) ? t.apiKeyMissing : t.notInstalled
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

const apis = ['anthropic', 'openai', 'openai_responses', 'google']

/** A model API, which needs a key; all others are programs. */
export function isApi({ name }: Pick<Provider, 'name'>): boolean {
  return apis.includes(name)
}

export function versionOf({ inspection }: Provider): string | null {
  return inspection.state === 'ready' ? (inspection.version ?? null) : null
}

export function adviceOf({ inspection }: Provider): string | null {
  return inspection.state === 'missing' ? inspection.advice : null
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
