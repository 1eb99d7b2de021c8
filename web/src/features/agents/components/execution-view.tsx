import { Link } from '@tanstack/react-router'
import { RotateCcw, Square } from 'lucide-react'
import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react'
import { AgentMark } from '@/components/ui/agent-mark'
import { Button } from '@/components/ui/button'
import { Markdown } from '@/components/ui/markdown'
import { StatusDot } from '@/components/ui/status-dot'
import type { Agent } from '@/lib/api/types'
import { duration } from '@/lib/format'
import type { Execution } from '../model/execution'
import type { Executing } from '../model/use-execution'
import styles from './execute-dialog.module.css'
import { ExecutionApproval } from './execution-approval'
import { ExecutionFigures } from './execution-figures'
import { ExecutionTools } from './execution-tools'
import { t } from '../texts'

interface ExecutionViewProps {
  agent: Agent
  task: string
  executing: Executing
  onAgain: () => void
  onClose: () => void
}

export function ExecutionView({ agent, task, executing, onAgain, onClose }: ExecutionViewProps): ReactNode {
  const { execution, isStopping, isAnswering, stop, answer } = executing
  const output = useRef<HTMLDivElement>(null)
  useFollow(output, execution)
  if (!execution) return null
  const { ending, roomId, text, thinking, tools, approvals, metrics } = execution
  const isRunning = ending === null
  return (
    <>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a long one scrolls */}
      <p className={styles.task} role="region" aria-label={t.theTask} tabIndex={0}>
        {task}
      </p>
      <div className={styles.state}>
        <AgentMark id={agent.id} name={agent.name} />
        <strong dir="auto">{agent.name}</strong>
        {isRunning ? <Progress execution={execution} isStopping={isStopping} /> : <span role="status">{words[ending.kind]}</span>}
      </div>
      {isRunning && <div className={styles.progress} role="progressbar" aria-label={t.taskIsRunning} />}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard must reach it */}
      <div ref={output} className={styles.output} role="region" aria-label={t.answer} tabIndex={0}>
        {thinking !== '' && (
          <details className={styles.thinking}>
            <summary>{text === '' && isRunning ? t.thinkingNow : t.thought}</summary>
            <p>{thinking}</p>
          </details>
        )}
        <ExecutionTools tools={tools} isWaiting={approvals.length > 0} />
        {text !== '' && <Markdown text={text} isGrowing={isRunning} />}
        {approvals.map((approval) => (
          <ExecutionApproval key={approval.id} approval={approval} roomId={roomId} isBusy={isAnswering} onAnswer={answer} onClose={onClose} />
        ))}
        {ending?.text && (
          <p className={styles.ending} data-kind={ending.kind} role={ending.kind === 'failed' ? 'alert' : undefined}>
            {ending.text}
          </p>
        )}
        {ending?.kind === 'completed' && text === '' && ending.text === null && <p className={styles.quiet}>{t.noReplyNeeded}</p>}
      </div>
      {metrics && !isRunning && <ExecutionFigures metrics={metrics} />}
      <div className={styles.actions}>
        {roomId && (
          <Link className={styles.room} to="/rooms/$roomId" params={{ roomId }} onClick={onClose}>
            {t.openItsRoom}
          </Link>
        )}
        {isRunning ? (
          <>
            <Button onClick={onClose} title={t.itContinuesInItsRoom}>
              {t.runInBackground}
            </Button>
            <Button look="danger" isBusy={isStopping} disabled={execution.runId === null} onClick={stop}>
              <Square size={12} fill="currentColor" aria-hidden />
              {isStopping ? t.stopping : t.stop}
            </Button>
          </>
        ) : (
          <>
            <Button onClick={onAgain}>
              <RotateCcw size={14} aria-hidden />
              {t.anotherTask}
            </Button>
            <Button look="primary" onClick={onClose}>
              {t.done}
            </Button>
          </>
        )}
      </div>
    </>
  )
}

const words = { get completed() { return t.isDone }, get failed() { return t.failed }, get stopped() { return t.wasStopped }, get lost() { return t.isOutOfSight } }

function Progress({ execution, isStopping }: { execution: Execution; isStopping: boolean }): ReactNode {
  const [since] = useState(Date.now)
  const [now, setNow] = useState(since)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 100)
    return () => clearInterval(timer)
  }, [])
  const isWaiting = execution.approvals.length > 0
  return (
    <>
      <StatusDot status={isWaiting ? 'waiting' : 'working'} />
      <span role="status">{isStopping ? t.stopping : isWaiting ? t.waitingForYou : execution.activity}</span>
      <span className={styles.clock}>{duration(Math.floor((now - since) / 100) * 100)}</span>
    </>
  )
}

/** Keeps the end in sight for those who have not scrolled up. */
function useFollow(output: RefObject<HTMLDivElement | null>, execution: Execution | null): void {
  const isAtEnd = useRef(true)
  useEffect(() => {
    const element = output.current
    if (!element) return
    const moved = (): void => {
      isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40
    }
    element.addEventListener('scroll', moved, { passive: true })
    return () => element.removeEventListener('scroll', moved)
  }, [output])
  useEffect(() => {
    if (isAtEnd.current) output.current?.scrollTo({ top: output.current.scrollHeight })
  }, [output, execution])
}
