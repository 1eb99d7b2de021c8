import { Keyboard, Monitor, Moon, Search, Sun } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import { Kbd } from '@/components/ui/kbd'
import { useStore } from '@/lib/store'
import { nextTheme, setTheme, themeStore } from '@/lib/theme'
import styles from './root.module.css'

const icons = { system: Monitor, light: Sun, dark: Moon }
const words = { system: 'system', light: 'light', dark: 'dark' }

export function RailFoot({ onPalette, onShortcuts }: { onPalette: () => void; onShortcuts: () => void }): ReactNode {
  const theme = useStore(themeStore)
  const Icon = icons[theme]
  return (
    <div className={styles.foot}>
      <button type="button" className={styles.search} onClick={onPalette}>
        <Search size={15} aria-hidden />
        <span>Find</span>
        <Kbd keys="mod+K" />
      </button>
      <IconButton label={`Appearance: ${words[theme]}`} onClick={() => setTheme(nextTheme())}>
        <Icon size={16} aria-hidden />
      </IconButton>
      <IconButton label="Keyboard shortcuts" onClick={onShortcuts}>
        <Keyboard size={16} aria-hidden />
      </IconButton>
    </div>
  )
}
