import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import { Segmented } from '@/components/ui/segmented'
import { useStore } from '@/lib/store'
import { type Theme, setTheme, themeStore, themes } from '@/lib/theme'
import { t } from '../texts'

const words: Record<Theme, string> = { get system() { return t.system }, get light() { return t.light }, get dark() { return t.dark } }

export function ThemeSection(): ReactNode {
  const theme = useStore(themeStore)
  return (
    <Section isCompact title={t.appearance} lead={t.forThisBrowserOnly}>
      <div>
        <Segmented label={t.appearance} choices={themes.map((value) => ({ value, label: words[value] }))} value={theme} onChange={setTheme} />
      </div>
    </Section>
  )
}
