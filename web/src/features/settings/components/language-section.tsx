import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import { Segmented } from '@/components/ui/segmented'
import { type Language, languages, useLanguage } from '@/lib/i18n'
import { setPreference } from '@/lib/preferences'
import { t } from '../texts'

/** Each in itself: who looks for theirs cannot read the other. */
const names: Record<Language, string> = { en: 'English', de: 'Deutsch' }

export function LanguageSection(): ReactNode {
  const chosen = useLanguage()
  return (
    <Section isCompact title={t.language} lead={t.forThisBrowserOnly}>
      <div>
        <Segmented label={t.language} choices={languages.map((value) => ({ value, label: names[value] }))} value={chosen} onChange={(next) => setPreference('language', next)} />
      </div>
    </Section>
  )
}
