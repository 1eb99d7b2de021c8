import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Pencil, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button, IconButton } from '@/components/ui/button'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import { EmptyState } from '@/components/ui/empty-state'
import { ProblemNote } from '@/components/ui/problem-note'
import { ProblemText } from '@/components/ui/problem-text'
import { Section } from '@/components/ui/section'
import type { Agent, Memory } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { changeMemory, deleteMemory, memoriesQuery } from '../api/memories'
import { t } from '../texts'
import styles from './memory-view.module.css'

/** What an agent remembers across rooms: to read, correct and delete. */
export function MemoryView({ agent }: { agent: Agent }): ReactNode {
  const { data: memories, error, refetch } = useQuery(memoriesQuery(agent.id))
  const [deleting, setDeleting] = useState<Memory | null>(null)
  return (
    <Section title={t.memory} lead={t.notesThatTheAgentSaved}>
      {error && <ProblemNote title={t.couldNotLoadTheMemory} error={error} onRetry={() => void refetch()} />}
      {memories?.length === 0 && <EmptyState title={t.noNotesYet} />}
      {memories && memories.length > 0 && (
        <ul className={styles.list} aria-label={t.memory}>
          {memories.map((memory) => (
            <Note key={memory.id} agentId={agent.id} memory={memory} onDelete={() => setDeleting(memory)} />
          ))}
        </ul>
      )}
      {deleting && <DeleteNote agentId={agent.id} memory={deleting} onClose={() => setDeleting(null)} />}
    </Section>
  )
}

function Note({ agentId, memory, onDelete }: { agentId: string; memory: Memory; onDelete: () => void }): ReactNode {
  const [edited, setEdited] = useState<string | null>(null)
  const queries = useQueryClient()
  const save = useMutation({
    mutationFn: (text: string) => changeMemory(agentId, memory.id, text),
    onSuccess: async () => {
      await queries.invalidateQueries(memoriesQuery(agentId))
      setEdited(null)
    },
  })
  return (
    <li className={styles.note}>
      {edited === null ? (
        <p dir="auto">{memory.text}</p>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault()
            save.mutate(edited)
          }}
        >
          <textarea aria-label={t.note} dir="auto" rows={3} value={edited} onChange={(event) => setEdited(event.target.value)} />
          <ProblemText error={save.error} />
          <Button type="submit" size="small" look="primary" isBusy={save.isPending} disabled={edited.trim() === ''}>
            {t.save}
          </Button>
          <Button size="small" onClick={() => setEdited(null)}>
            {t.cancel}
          </Button>
        </form>
      )}
      <time dateTime={memory.created_at} title={fullTime(memory.created_at)}>
        {shortTime(memory.created_at)}
      </time>
      <IconButton label={t.editNote} onClick={() => setEdited(memory.text)}>
        <Pencil size={15} aria-hidden />
      </IconButton>
      <IconButton label={t.deleteNote} onClick={onDelete}>
        <Trash2 size={15} aria-hidden />
      </IconButton>
    </li>
  )
}

function DeleteNote({ agentId, memory, onClose }: { agentId: string; memory: Memory; onClose: () => void }): ReactNode {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () => deleteMemory(agentId, memory.id),
    onSuccess: async () => {
      await queries.invalidateQueries(memoriesQuery(agentId))
      onClose()
    },
  })
  return (
    <ConfirmDialog title={t.deleteThisNote} keep={t.cancel} confirm={t.deleteNote} isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>{t.theAgentForgetsIt}</p>
      <blockquote dir="auto">{memory.text.slice(0, 300)}</blockquote>
    </ConfirmDialog>
  )
}
