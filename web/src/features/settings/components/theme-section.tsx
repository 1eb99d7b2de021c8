import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import { Segmented } from '@/components/ui/segmented'
import { useStore } from '@/lib/store'
import { type Theme, setTheme, themeStore, themes } from '@/lib/theme'

const words: Record<Theme, string> = { system: 'System', light: 'Light', dark: 'Dark' }

export function ThemeSection(): ReactNode {
  const theme = useStore(themeStore)
  return (
    <Section isCompact title="Appearance" lead="For this browser only.">
      <div>
        <Segmented label="Appearance" choices={themes.map((value) => ({ value, label: words[value] }))} value={theme} onChange={setTheme} />
      </div>
    </Section>
  )
}
