import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import { setPreference, usePreference } from '@/lib/preferences'
import styles from './settings.module.css'

export function DeveloperSection(): ReactNode {
  const isOn = usePreference('developer')
  return (
    <Section title="Developer details" lead="For this browser only.">
      <label className={styles.switch}>
        <input type="checkbox" checked={isOn} onChange={(event) => setPreference('developer', event.target.checked)} />
        Show journal numbers, positions and raw events in rooms
      </label>
    </Section>
  )
}
