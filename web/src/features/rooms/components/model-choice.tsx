import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { createPortal } from 'react-dom'
import { later } from '@/components/ui/later'
import { providersQuery } from '@/lib/api/queries'
import type { Agent, Room } from '@/lib/api/types'
import { modelWords, settingsIn } from '../model/member-flags'
import { t } from '../texts'
import styles from './recipient.module.css'

const ModelDialog = later(async () => (await import('./model-dialog')).ModelDialog)

/** With which model the agents of a room answer here, and how much it reasons. */
export function ModelChoice({ room, members }: { room: Room; members: readonly Agent[] }): ReactNode {
  const [isOpen, setIsOpen] = useState(false)
  const providers = useQuery(providersQuery).data ?? []
  // The demo agent has no model.
  const choosers = members.filter((agent) => providers.some(({ id, kind }) => id === agent.provider && kind !== 'demo'))
  if (choosers.length === 0) return null
  const [first] = choosers
  const chosen = choosers.flatMap((agent) => modelWords(settingsIn(room, agent.id)))
  const own = choosers.length === 1 ? (first?.model ?? t.defaultModel) : t.models
  const shown = chosen.length > 0 ? chosen.join(' · ') : own
  return (
    <>
      <button type="button" className={styles.recipient} title={t.modelAndEffort} aria-haspopup="dialog" onClick={() => setIsOpen(true)}>
        <span className="visually-hidden">{t.modelAndEffort}: </span>
        {shown}
      </button>
      {/* Not inside of the composer: a form in a form is none. */}
      {isOpen && createPortal(<ModelDialog room={room} members={choosers} onClose={() => setIsOpen(false)} />, document.body)}
    </>
  )
}
