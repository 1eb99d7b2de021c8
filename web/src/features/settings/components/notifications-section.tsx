import { type ReactNode, useState } from 'react'
import { Section } from '@/components/ui/section'
import textStyles from '@/components/ui/text.module.css'
import { setPreference, usePreference } from '@/lib/preferences'
import { playTone } from '@/lib/tone'
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
    <Section title="Notifications" lead="When an agent needs your approval or has answered, while you look at another tab. For this browser only.">
      <label className={styles.switch}>
        <input type="checkbox" checked={notifies} onChange={(event) => void change(event.target.checked)} />
        Show browser notifications
      </label>
      {isBlocked && <p className={textStyles.note}>The browser blocks notifications for this page. Allow them in its site settings, then turn this on again.</p>}
      <label className={styles.switch}>
        <input
          type="checkbox"
          checked={sounds}
          onChange={(event) => {
            setPreference('sound', event.target.checked)
            if (event.target.checked) playTone()
          }}
        />
        Play a sound
      </label>
    </Section>
  )
}
