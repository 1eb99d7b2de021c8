import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemNote } from '@/components/ui/problem-note'
import { ApiError } from '@/lib/api/client'
import { personName } from '@/lib/person-name'
import type { Skill, Training, TrainingRoom } from '@/lib/api/types'
import { giveTask, trainingMessagesQuery } from '../api/training'
import { AreaField } from './found'
import { TrainingAnswer } from './training-answer'
import { t } from '../texts'
import styles from './training.module.css'

interface TrainingRoomViewProps {
  skill: Skill
  room: TrainingRoom
  agent: string
  training: Training
}

export function TrainingRoomView({ skill, room, agent, training }: TrainingRoomViewProps): ReactNode {
  const messages = useQuery(trainingMessagesQuery(room.room_id))
  const [task, setTask] = useState('')
  const queries = useQueryClient()
  const send = useMutation({
    mutationFn: (text: string) => giveTask(room.room_id, text),
    onSuccess: async (_, text) => {
      if (text === task) setTask('')
      await queries.invalidateQueries(trainingMessagesQuery(room.room_id))
    },
  })

  if (messages.error instanceof ApiError && messages.error.status === 404) {
    return <p className={styles.meta}>{t.thisRoomWasDeletedWhatWasRated}</p>
  }
  return (
    <div className={styles.room}>
      <div className={styles.roomHead}>
        <p className={styles.meta}>{t.withNewestLast(agent)}</p>
        <Link to="/rooms/$roomId" params={{ roomId: room.room_id }}>
          {t.openAsARoom}
        </Link>
      </div>
      {messages.error && <ProblemNote title={t.couldNotLoadAnswers} error={messages.error} onRetry={() => void messages.refetch()} />}
      {messages.data?.length === 0 && <p className={styles.meta}>{t.noMessagesYetGiveTheAgentA}</p>}
      <ul className={styles.cards}>
        {messages.data?.map((message) => (
          <li key={message.id}>
            {message.author.kind === 'agent' ? (
              <TrainingAnswer skill={skill} message={message} training={training} />
            ) : (
              <p className={styles.asked} dir="auto">
                <span>{personName(message.author.name)}</span>
                {message.text}
              </p>
            )}
          </li>
        ))}
      </ul>
      {send.error && <ProblemNote title={t.itWasNotSent} error={send.error} />}
      <AreaField label={t.aTaskFor(agent)} rows={2} value={task} findings={[]} onChange={setTask} />
      <div className={styles.actions}>
        <Button isBusy={send.isPending} onClick={() => send.mutate(t.pleaseProposeAnImprovedVersionOfThis)}>
          {t.askForAProposal}
        </Button>
        <Button look="primary" isBusy={send.isPending} disabled={task.trim() === ''} onClick={() => send.mutate(task)}>
          {t.sendTask}
        </Button>
      </div>
    </div>
  )
}
