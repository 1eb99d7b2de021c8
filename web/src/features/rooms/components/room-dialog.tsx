import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useState } from 'react'
import { AgentDetail } from '@/components/ui/agent-detail'
import { AgentMark } from '@/components/ui/agent-mark'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { Field } from '@/components/ui/field'
import { ProblemText } from '@/components/ui/problem-text'
import { Segmented } from '@/components/ui/segmented'
import { Select } from '@/components/ui/select'
import textStyles from '@/components/ui/text.module.css'
import { agentsQuery, projectsQuery, roomsQuery } from '@/lib/api/queries'
import type { Room, WhenBusy } from '@/lib/api/types'
import { changeRoom, createRoom } from '../api/room-commands'
import { ProjectServers } from './project-servers'
import { RememberedTools } from './remembered-tools'
import { t } from '../texts'
import styles from './room-dialog.module.css'

const busyChoices = [
  { value: 'enqueue', get label() { return t.wait }, get hint() { return t.aNewMessageWaitsUntilTheAnswer } },
  { value: 'interrupt', get label() { return t.interruptIt }, get hint() { return t.aNewMessageStopsTheCurrentAnswer } },
  { value: 'reject', get label() { return t.areRejected }, get hint() { return t.aNewMessageIsRejected } },
] as const

/** Makes a room, or changes the one it is given. */
export function RoomDialog({ room, onClose }: { room?: Room; onClose: () => void }): ReactNode {
  const { data: agents = [], isPending } = useQuery(agentsQuery)
  const [name, setName] = useState(room?.name ?? '')
  const [chosen, setChosen] = useState<readonly string[] | null>(room?.agents ?? null)
  const [whenBusy, setWhenBusy] = useState<WhenBusy>(room?.policy.when_busy ?? 'interrupt')
  const [projectId, setProjectId] = useState('')
  const projects = useQuery({ ...projectsQuery, enabled: !room }).data ?? []
  const queries = useQueryClient()
  const navigate = useNavigate()
  // A new room begins with the first agent there is: one click less for most people.
  const members = chosen ?? agents.slice(0, 1).map((agent) => agent.id)

  const toggle = (id: string): void => setChosen(members.includes(id) ? members.filter((other) => other !== id) : [...members, id])

  const save = useMutation({
    mutationFn: () => {
      const settings = { name, agents: [...members], whenBusy }
      return room ? changeRoom(room.id, settings) : createRoom({ ...settings, projectId: projectId || undefined })
    },
    onSuccess: async (saved) => {
      await queries.invalidateQueries(roomsQuery)
      onClose()
      if (!room) await navigate({ to: '/rooms/$roomId', params: { roomId: saved.id } })
    },
  })

  const submit = (event: FormEvent): void => {
    event.preventDefault()
    save.mutate()
  }

  return (
    <Dialog title={room ? t.roomSettings : t.newRoom} onClose={onClose}>
      <form className={dialogs.body} onSubmit={submit}>
        <Field label={t.name} value={name} required maxLength={120} autoComplete="off" onChange={(event) => setName(event.target.value)} />
        <fieldset className={styles.agents}>
          <legend>{t.agentsInTheOrderTheyAnswer}</legend>
          {isPending && <p className={textStyles.detail}>{t.loading}</p>}
          {agents.map((agent) => (
            <label key={agent.id} className={styles.agent}>
              <input type="checkbox" checked={members.includes(agent.id)} onChange={() => toggle(agent.id)} />
              <AgentMark id={agent.id} name={agent.name} size="small" />
              {agent.name}
              <span className={textStyles.detail}>
                <AgentDetail agent={agent} />
              </span>
              {members.includes(agent.id) && members.length > 1 && <span className={styles.place}>{members.indexOf(agent.id) + 1}</span>}
            </label>
          ))}
        </fieldset>
        <div className={styles.busy}>
          <span>{t.ifAnAgentIsStillAnsweringNew}</span>
          <Segmented label={t.whenBusy} choices={busyChoices} value={whenBusy === 'steer' ? 'enqueue' : whenBusy} onChange={setWhenBusy} />
        </div>
        {projects.length > 0 && (
          <Select
            label={t.project}
            value={projectId}
            options={[{ value: '', label: t.aFolderOfItsOwn }, ...projects.map((project) => ({ value: project.id, label: project.name }))]}
            onChange={setProjectId}
          />
        )}
        {room && <RememberedTools roomId={room.id} />}
        {room && <ProjectServers roomId={room.id} />}
        <ProblemText error={save.error} />
        <div className={styles.actions}>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button type="submit" look="primary" isBusy={save.isPending} disabled={name.trim() === '' || isPending}>
            {room ? t.save : t.createRoom}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
