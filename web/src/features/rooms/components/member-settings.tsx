import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ProblemText } from '@/components/ui/problem-text'
import { roomsQuery } from '@/lib/api/queries'
import type { Agent, MemberChange, Room } from '@/lib/api/types'
import { changePolicy } from '../api/tape'
import { memberFlags, settingsIn } from '../model/member-flags'
import { NumberOption } from './number-option'
import { t } from '../texts'
import styles from './member-settings.module.css'

/** When one agent speaks in this room, and who reads it. */
export function MemberSettings({ room, agent }: { room: Room; agent: Agent }): ReactNode {
  const queries = useQueryClient()
  const settings = settingsIn(room, agent.id)
  const change = useMutation({
    mutationFn: (changes: MemberChange) => changePolicy(room.id, { members: { [agent.id]: changes } }),
    onSuccess: () => queries.invalidateQueries(roomsQuery),
  })
  return (
    <fieldset className={styles.settings}>
      <legend className="visually-hidden">{t.settingsOf(agent.name)}</legend>
      <NumberOption label={t.priority} hint={t.higherSpeaksEarlier} value={settings.priority} least={-100} most={100} onChange={(priority) => change.mutate({ priority })} />
      {memberFlags().map(({ flag, label, detail }) => (
        <label key={flag} className={styles.flag}>
          <input type="checkbox" checked={settings[flag]} disabled={change.isPending} onChange={(event) => change.mutate({ [flag]: event.target.checked })} />
          <span>
            {label}
            <small>{detail}</small>
          </span>
        </label>
      ))}
      <ProblemText error={change.error} />
    </fieldset>
  )
}
