import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import { setPreference, usePreference } from '@/lib/preferences'
import { t } from '../texts'
import styles from './settings.module.css'

export function DeveloperSection(): ReactNode {
  const isOn = usePreference('developer')
  return (
    <Section title={t.developerDetails} lead={t.forThisBrowserOnly}>
      <label className={styles.switch}>
        <input type="checkbox" checked={isOn} onChange={(event) => setPreference('developer', event.target.checked)} />
        {t.showJournalNumbersPositionsAndRawEvents}
      </label>
    </Section>
  )
}
