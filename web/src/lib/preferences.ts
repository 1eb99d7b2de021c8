import type { Language } from './i18n'
import { remember, remembered } from './storage'
import { createStore, useStore } from './store'

/** What this browser was told once and keeps. */
export interface Preferences {
  /** Journal numbers, positions and events are shown. */
  developer: boolean
  /** The browser tells when an agent needs the person or has answered, while the page is not looked at. */
  notifications: boolean
  sound: boolean
  /** `null` is the browser's. */
  language: Language | null
}

const key = 'preferences'
const unset: Preferences = { developer: false, notifications: false, sound: false, language: null }

const preferences = createStore<Preferences>({ ...unset, ...remembered<Partial<Preferences>>(key, {}) })

export function preference<K extends keyof Preferences>(name: K): Preferences[K] {
  return preferences.get()[name]
}

export function setPreference<K extends keyof Preferences>(name: K, value: Preferences[K]): void {
  const next = { ...preferences.get(), [name]: value }
  remember(key, next)
  preferences.set(next)
}

/** Called after a preference has changed. */
export function onPreference(listener: () => void): () => void {
  return preferences.subscribe(listener)
}

export function usePreference<K extends keyof Preferences>(name: K): Preferences[K] {
  return useStore(preferences)[name]
}
