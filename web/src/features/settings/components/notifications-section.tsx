import { type ReactNode, useState } from 'react'
import { Section } from '@/components/ui/section'
import textStyles from '@/components/ui/text.module.css'
import { setPreference, usePreference } from '@/lib/preferences'
import { playTone } from '@/lib/tone'
import { t } from '../texts'
import styles from './settings.module.css'

/** How this browser tells that an agent needs the person or has answered, while the page is not in front. */
export function NotificationsSection(): ReactNode {
  const notifies = usePreference('notifications')
  const sounds = usePreference('sound')
  const [isBlocked, setIsBlocked] = useState(() => globalThis.Notification?.permission === 'denied')

  const change = async (isOn: boolean): Promise<void> => {
    if (!isOn) return setPreference('notifications', false)
    const answer = await globalThis.Notification?.requestPermission()
    setIsBlocked(answer !== 'granted')
    setPreference('notifications', answer === 'granted')
  }

  return (
    <Section title={t.notifications} lead={t.whenAnAgentNeedsYourApprovalOr}>
      <label className={styles.switch}>
        <input type="checkbox" checked={notifies} onChange={(event) => void change(event.target.checked)} />
        {t.showBrowserNotifications}
      </label>
      {isBlocked && <p className={textStyles.note}>{t.theBrowserBlocksNotificationsForThisPage}</p>}
      <label className={styles.switch}>
        <input
          type="checkbox"
          checked={sounds}
          onChange={(event) => {
            setPreference('sound', event.target.checked)
            if (event.target.checked) playTone()
          }}
        />
        {t.playASound}
      </label>
    </Section>
  )
}
