import { useSyncExternalStore } from 'react'
import { remember, remembered } from './storage'
import { createStore, useStore } from './store'

export type Theme = 'system' | 'light' | 'dark'

export const themes: readonly Theme[] = ['system', 'light', 'dark']
export const themeStore = createStore<Theme>(remembered<Theme>('theme', 'system'))

export function setTheme(theme: Theme): void {
  remember('theme', theme === 'system' ? null : theme)
  themeStore.set(theme)
  applyTheme()
}

/** On the root element, so that even what is drawn outside of the app follows it. */
export function applyTheme(): void {
  const theme = themeStore.get()
  const root = document.documentElement
  if (theme === 'system') delete root.dataset.theme
  else root.dataset.theme = theme
}

export function nextTheme(): Theme {
  const index = themes.indexOf(themeStore.get())
  return themes[(index + 1) % themes.length] ?? 'system'
}

const systemIsDark = globalThis.matchMedia?.('(prefers-color-scheme: dark)')

function subscribe(listener: () => void): () => void {
  systemIsDark?.addEventListener('change', listener)
  return () => systemIsDark?.removeEventListener('change', listener)
}

/** For what cannot take its colours from the styles. */
export function useIsDark(): boolean {
  const theme = useStore(themeStore)
  const system = useSyncExternalStore(subscribe, () => systemIsDark?.matches ?? false)
  return theme === 'system' ? system : theme === 'dark'
}
