import { createStore, useStore } from './store'

// Every string that people read stands in a table: `texts/en.ts` beside the code that shows it, and `texts/de.ts` with the same
// keys, which the type checker compares. A string with values in it is a function. Reading `t.key` reads the table of the
// language that is chosen, so it happens while something is shown, never while a module is loaded (`scripts/check-texts.mjs`).

export const languages = ['en', 'de'] as const
export type Language = (typeof languages)[number]
type Table = object
/** English tables and what stands for each of them in one other language. */
export type Translation = ReadonlyMap<Table, Table>

const chosen = createStore<{ language: Language; translation: Translation | null }>({ language: 'en', translation: null })

/** The strings of one area, in the chosen language. */
export function texts<T extends Table>(english: T): T {
  return new Proxy(english, {
    get: (_, key) => Reflect.get(chosen.get().translation?.get(english) ?? english, key) as unknown,
  })
}

export function language(): Language {
  return chosen.get().language
}

export function useLanguage(): Language {
  return useStore(chosen).language
}

export function chooseLanguage(next: Language, translation: Translation | null): void {
  chosen.set({ language: next, translation })
  if (typeof document !== 'undefined') document.documentElement.lang = next
}

/** The person's own variety of the chosen language, such as `en-GB`, which decides how dates and numbers are written. */
export function locale(): string {
  const wanted = language()
  return languagesOfBrowser().find((tag) => tag === wanted || tag.startsWith(`${wanted}-`)) ?? wanted
}

function languagesOfBrowser(): readonly string[] {
  return globalThis.navigator?.languages ?? []
}

/** What the person chose, or else the first language of the browser that there is a table for. */
export function preferredLanguage(saved: Language | null): Language {
  const ofBrowser = languagesOfBrowser().map((tag) => tag.split('-')[0])
  return saved ?? ofBrowser.map((tag) => languages.find((known) => known === tag)).find((known) => known !== undefined) ?? 'en'
}

/** `1 room`, `2 rooms`: English and German have these two forms. */
export function plural(count: number, one: string, many: string): string {
  return new Intl.PluralRules(language()).select(count) === 'one' ? one : many
}
