import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemNote } from '@/components/ui/problem-note'
import { Section } from '@/components/ui/section'
import { Select } from '@/components/ui/select'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import type { Skill, Training } from '@/lib/api/types'
import { shortTime } from '@/lib/format'
import { beginTraining, trainingQuery } from '../api/training'
import { TrainingRoomView } from './training-room-view'
import { t } from '../texts'
import styles from './training.module.css'

export function TrainingRooms({ skill, training }: { skill: Skill; training: Training }): ReactNode {
  const agents = useQuery(agentsQuery).data ?? []
  const rooms = training.rooms.toSorted((a, b) => b.created_at.localeCompare(a.created_at))
  const [chosenAgent, setAgent] = useState<string | null>(null)
  const [chosenRoom, setRoom] = useState<string | null>(null)
  const queries = useQueryClient()
  const agent = chosenAgent ?? agents[0]?.id
  const room = rooms.find((one) => one.room_id === chosenRoom) ?? rooms[0]
  const nameOf = (id: string): string => agents.find((one) => one.id === id)?.name ?? t.deletedAgent

  const open = useMutation({
    mutationFn: (agentId: string) => beginTraining(skill.name, agentId),
    onSuccess: async (created) => {
      await Promise.all([queries.invalidateQueries(trainingQuery(skill.name)), queries.invalidateQueries(roomsQuery)])
      setRoom(created.room_id)
    },
  })

  return (
    <Section title={t.trainingRooms} lead={t.anAgentPracticesTheSkillHereGive}>
      <div className={styles.tools}>
        <Select label={t.agent} value={agent ?? ''} options={agents.map(({ id, name }) => ({ value: id, label: name }))} onChange={setAgent} />
        <Button isBusy={open.isPending} disabled={agent === undefined} onClick={() => agent !== undefined && open.mutate(agent)}>
          <Plus size={15} aria-hidden />
          {t.openATrainingRoom}
        </Button>
        {rooms.length > 1 && room && (
          <Select
            label={t.roomTitle}
            value={room.room_id}
            options={rooms.map((one) => ({ value: one.room_id, label: `${nameOf(one.agent_id)}, ${shortTime(one.created_at)}` }))}
            onChange={setRoom}
          />
        )}
      </div>
      {open.error && <ProblemNote title={t.theRoomWasNotOpened} error={open.error} />}
      {room && <TrainingRoomView key={room.room_id} skill={skill} room={room} agent={nameOf(room.agent_id)} training={training} />}
    </Section>
  )
}
