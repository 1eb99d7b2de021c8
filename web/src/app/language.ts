import { type Language, type Translation, chooseLanguage, preferredLanguage } from '@/lib/i18n'
import { preference } from '@/lib/preferences'

const loaders: Record<Language, () => Promise<Translation | null>> = {
  en: async () => null,
  de: async () => (await import('./german')).german,
}

/** Shows the page in the preferred language; in English if the other one cannot be loaded. */
export async function applyLanguage(): Promise<void> {
  const wanted = preferredLanguage(preference('language'))
  try {
    chooseLanguage(wanted, await loaders[wanted]())
  } catch {
    chooseLanguage('en', null)
  }
}
