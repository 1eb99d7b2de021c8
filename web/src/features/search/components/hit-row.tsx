import { Link } from '@tanstack/react-router'
import { Bot, FileText, MessageSquare, MessagesSquare } from 'lucide-react'
import type { ReactNode } from 'react'
import { Highlighted } from '@/components/ui/highlighted'
import type { SearchHit } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { personName } from '@/lib/person-name'
import styles from './search-page.module.css'

export function HitRow({ hit }: { hit: SearchHit }): ReactNode {
  const { kind, title, snippet, author, created_at: time } = hit
  const who = author ? (author.kind === 'agent' ? author.name : personName(author.name)) : null
  const text = (
    <span className={styles.text} dir="auto">
      <Highlighted snippet={snippet} />
    </span>
  )
  return (
    <li className={styles.hit}>
      <Icon kind={kind} />
      <span className={styles.body}>
        <Target hit={hit}>{text}</Target>
        {kind === 'message' && <span className={styles.detail}>{[title, who].filter(Boolean).join(' · ')}</span>}
      </span>
      <time dateTime={time} title={fullTime(time)}>
        {shortTime(time)}
      </time>
    </li>
  )
}

/** Leads to what was found; a message is marked in its room. */
function Target({ hit, children }: { hit: SearchHit; children: ReactNode }): ReactNode {
  const { kind, id, room_id: roomId, seq } = hit
  if (kind === 'agent') return <Link to="/agents/$agentId" params={{ agentId: id }}>{children}</Link>
  if (kind === 'file') return <a href={`/api/uploads/${encodeURIComponent(id)}`} download={hit.title}>{children}</a>
  return <Link to="/rooms/$roomId" params={{ roomId: roomId ?? id }} search={kind === 'message' && seq ? { m: seq } : {}}>{children}</Link>
}

function Icon({ kind }: { kind: SearchHit['kind'] }): ReactNode {
  const Shape = { message: MessageSquare, room: MessagesSquare, agent: Bot, file: FileText }[kind]
  return <Shape size={15} aria-hidden />
}
