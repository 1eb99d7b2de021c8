import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { membersStore, toggleMembers } from '../model/members'
import { useStore } from '@/lib/store'
import { t } from '../texts'
import styles from './composer.module.css'

/** A message in a room without agents would be stored and never answered. */
export function NoAgentsNote(): ReactNode {
  const isShowingMembers = useStore(membersStore)
  return (
    <p className={styles.note} role="status">
      {t.noAgentsInThisRoomSoNobody}{' '}
      {!isShowingMembers && (
        <Button size="small" onClick={toggleMembers}>
          {t.addAnAgent}
        </Button>
      )}
    </p>
  )
}
