import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { membersStore, toggleMembers } from '../model/members'
import { useStore } from '@/lib/store'
import styles from './composer.module.css'

/** A message in a room without agents would be stored and never answered. */
export function NoAgentsNote(): ReactNode {
  const isShowingMembers = useStore(membersStore)
  return (
    <p className={styles.note} role="status">
      No agents in this room, so nobody answers.{' '}
      {!isShowingMembers && (
        <Button size="small" onClick={toggleMembers}>
          Add an agent
        </Button>
      )}
    </p>
  )
}
