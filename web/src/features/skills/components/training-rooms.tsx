import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemNote } from '@/components/ui/problem-note'
import { Section } from '@/components/ui/section'
import { Select } from '@/components/ui/select'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import type { Skill, Training } from '@/lib/api/types'
import { shortTime } from '@/lib/format'
import { useAction } from '@/lib/use-action'
import { beginTraining } from '../api/training'
import { TrainingRoomView } from './training-room-view'
import styles from './training.module.css'

export function TrainingRooms({ skill, training }: { skill: Skill; training: Training }): ReactNode {
  const agents = useQuery(agentsQuery).data ?? []
  const rooms = training.rooms.toSorted((a, b) => b.created_at.localeCompare(a.created_at))
  const [chosenAgent, setAgent] = useState<string | null>(null)
  const [chosenRoom, setRoom] = useState<string | null>(null)
  const queries = useQueryClient()
  const { isBusy, problem, run } = useAction()
  const agent = chosenAgent ?? agents[0]?.id
  const room = rooms.find((one) => one.room_id === chosenRoom) ?? rooms[0]
  const nameOf = (id: string): string => agents.find((one) => one.id === id)?.name ?? 'a deleted agent'

  const open = (): Promise<boolean> =>
    run(async () => {
      if (agent === undefined) return
      const made = await beginTraining(skill.name, agent)
      await Promise.all([queries.invalidateQueries({ queryKey: ['skills', 'training'] }), queries.invalidateQueries(roomsQuery)])
      setRoom(made.room_id)
    })

  return (
    <Section title="Training rooms" lead="In one an agent has the skill and knows that it is trained: give it tasks, rate what it answers, and ask it to propose better instructions.">
      <div className={styles.tools}>
        <Select label="Agent" value={agent ?? ''} options={agents.map(({ id, name }) => ({ value: id, label: name }))} onChange={setAgent} />
        <Button isBusy={isBusy} disabled={agent === undefined} onClick={() => void open()}>
          <Plus size={15} aria-hidden />
          Open a training room
        </Button>
        {rooms.length > 1 && room && (
          <Select
            label="Room"
            value={room.room_id}
            options={rooms.map((one) => ({ value: one.room_id, label: `${nameOf(one.agent_id)}, ${shortTime(one.created_at)}` }))}
            onChange={setRoom}
          />
        )}
      </div>
      {problem != null && <ProblemNote title="The room was not opened" error={problem} />}
      {room && <TrainingRoomView key={room.room_id} skill={skill} room={room} agent={nameOf(room.agent_id)} training={training} />}
    </Section>
  )
}
