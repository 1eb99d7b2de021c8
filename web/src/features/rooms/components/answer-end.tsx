import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { RotateCcw } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import type { Message, RunState } from '@/feed/state'
import { endOf } from '../model/run-end'
import { useRetry } from '../model/use-retry'
import styles from './answer-end.module.css'
import { RunFigures } from './run-figures'
import { t } from '../texts'

/** How an answer ended: what it cost where it is whole, what happened and what to do where it is not. */
export function AnswerEnd({ roomId, message, run }: { roomId: string; message: Message; run: RunState | undefined }): ReactNode {
  const isSilent = message.status === 'complete' && message.parts.length === 0
  return (
    <>
      {isSilent && <p className={styles.silent}>{t.noReplyNeeded}</p>}
      {message.status === 'partial' && <BadEnd roomId={roomId} run={run} />}
      {run && <RunFigures run={run} />}
    </>
  )
}

export function BadEnd({ roomId, run }: { roomId: string; run: RunState | undefined }): ReactNode {
  const retry = useRetry(roomId, run)
  const send = useMutation({ mutationFn: async () => retry?.() })
  const end = endOf(run)
  return (
    <div className={styles.end} data-kind={end.kind} role={end.kind === 'failed' ? 'alert' : undefined}>
      <div>
        <strong>{end.title}</strong>
        {end.detail && <p>{end.detail}</p>}
        {run?.error?.code === 'limit_budget' && (
          <Link to="/usage" hash="budgets">
            {t.budgets}
          </Link>
        )}
      </div>
      {retry && (
        <Button size="small" isBusy={send.isPending} onClick={() => send.mutate()}>
          <RotateCcw size={14} aria-hidden />
          {t.retryTitle}
        </Button>
      )}
    </div>
  )
}
