import type { Provider, ProviderSettings } from '@/lib/api/types'

/** What is typed; a key is only ever written. */
export interface SettingsDraft {
  key: string
  baseUrl: string
  label: string
  defaultModel: string
  contextWindow: string
  maxOutputTokens: string
}

/** The address of the server's own configuration is not the workspace's, so it is not offered to be saved. */
export function draftOf({ source, kind, base_url, label, default_model, limits }: Provider): SettingsDraft {
  const isOwn = source === 'settings'
  return {
    key: '',
    baseUrl: (isOwn && base_url) || '',
    label: kind === 'endpoint' ? label : '',
    defaultModel: default_model ?? '',
    contextWindow: String(limits.context_window ?? ''),
    maxOutputTokens: String(limits.max_output_tokens ?? ''),
  }
}

export function settingsFrom(draft: SettingsDraft): ProviderSettings {
  const text = (value: string): string | undefined => value.trim() || undefined
  const number = (value: string): number | null => (value.trim() === '' ? null : Number(value))
  return {
    // Left out, the stored key stays.
    key: text(draft.key),
    base_url: text(draft.baseUrl),
    label: text(draft.label),
    default_model: text(draft.defaultModel),
    limits: { context_window: number(draft.contextWindow), max_output_tokens: number(draft.maxOutputTokens) },
  }
}

/** `Open Router!` becomes `open-router`, which agents name. */
export function idFrom(label: string): string {
  return label.toLowerCase().normalize('NFKD').replace(/[^a-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 64)
}
