import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Message, Run } from '@/lib/api/types'
import { questionQuery } from '../api/runs'
import { t } from '../texts'
import styles from './run-page.module.css'

/** What was asked, and the way to the conversation. */
export function RunQuestion({ run }: { run: Run }): ReactNode {
  const question = useQuery(questionQuery(run)).data
  // Where the message is not at hand, the place where the run was queued is right behind it.
  const target = question?.seq ?? run.queued_seq
  return (
    <div className={styles.question}>
      <div className={styles.asked}>
        <span>{t.answers}</span>
        <p>{question ? textOf(question) : t.aMessageInItsRoom}</p>
      </div>
      <Link to="/rooms/$roomId" params={{ roomId: run.room_id }} search={{ m: target }}>
        {t.showItInTheRoom}
      </Link>
    </div>
  )
}

const longest = 600

function textOf(message: Message): string {
  const text = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}
