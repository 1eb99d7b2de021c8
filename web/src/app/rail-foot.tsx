import { Keyboard, Monitor, Moon, Search, Sun } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import { Kbd } from '@/components/ui/kbd'
import { useStore } from '@/lib/store'
import { type Theme, nextTheme, setTheme, themeStore } from '@/lib/theme'
import { t } from './texts'
import styles from './root.module.css'

const icons = { system: Monitor, light: Sun, dark: Moon }
const words = (): Record<Theme, string> => ({ system: t.likeTheSystem, light: t.light, dark: t.dark })

export function RailFoot({ onPalette, onShortcuts }: { onPalette: () => void; onShortcuts: () => void }): ReactNode {
  const theme = useStore(themeStore)
  const Icon = icons[theme]
  return (
    <div className={styles.foot}>
      <button type="button" className={styles.search} onClick={onPalette}>
        <Search size={15} aria-hidden />
        <span>{t.find}</span>
        <Kbd keys="mod+K" />
      </button>
      <IconButton label={t.appearance(words()[theme])} onClick={() => setTheme(nextTheme())}>
        <Icon size={16} aria-hidden />
      </IconButton>
      <IconButton label={t.keyboardShortcuts} onClick={onShortcuts}>
        <Keyboard size={16} aria-hidden />
      </IconButton>
    </div>
  )
}
