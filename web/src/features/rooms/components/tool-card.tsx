import { Link } from '@tanstack/react-router'
import { Check, ChevronRight, CircleAlert, LoaderCircle, Wrench } from 'lucide-react'
import { type ReactNode, memo, useState } from 'react'
import { VisibleText } from '@/components/ui/visible-text'
import type { ToolPart } from '@/feed/state'
import { duration } from '@/lib/format'
import { withoutHidden } from '@/lib/hidden-characters'
import { briefOf } from '../model/tool-input'
import { OutputText } from './output-text'
import { ResultView } from './result-view'
import styles from './tool-card.module.css'
import { ToolInput } from './tool-input'
import { t } from '../texts'

interface ToolCardProps {
  call: ToolPart
  /** Whether the run is still active. */
  isLive: boolean
  /** Whether the call waits for approval. */
  isWaiting: boolean
  /** What a person made of the input before they allowed it: this is what ran. */
  editedInput?: unknown
}

export const ToolCard = memo(function ToolCard({ call, isLive, isWaiting, editedInput }: ToolCardProps): ReactNode {
  const isRunning = isLive && call.result === null && !isWaiting
  const isError = call.result?.is_error ?? false
  const [choice, setChoice] = useState<boolean | null>(null)
  const input = editedInput === undefined ? call.input : editedInput
  // The approval below shows the input of a call that waits.
  const hasDetails = !isWaiting || call.output !== ''
  // Only a failure opens by itself: cards that open and close while they run move what is being read.
  const isOpen = hasDetails && (choice ?? isError)

  return (
    <div className={styles.card} data-error={isError || undefined} role="group" aria-label={t.tool(withoutHidden(call.name))}>
      <button type="button" className={styles.head} aria-expanded={isOpen} disabled={!hasDetails} onClick={() => setChoice(!isOpen)}>
        <ChevronRight size={14} aria-hidden className={styles.arrow} />
        <Wrench size={14} aria-hidden className={styles.tool} />
        <span className={styles.name}>
          <VisibleText text={call.name} />
        </span>
        <code className={styles.brief}>
          <VisibleText text={briefOf(input)} />
        </code>
        <State call={call} isRunning={isRunning} isWaiting={isWaiting} />
      </button>
      {isOpen && (
        <div className={styles.details}>
          {!isWaiting && <ToolInput input={input} />}
          {call.output !== '' && <OutputText label={t.output} text={call.output} isGrowing={isRunning} />}
          {call.child && (
            <Link to="/rooms/$roomId" params={{ roomId: call.child.room_id }}>
              {t.openChild(withoutHidden(call.child.agent_name))}
            </Link>
          )}
          {call.result && <ResultView content={call.result.content} isError={isError} />}
        </div>
      )}
    </div>
  )
})

function State({ call, isRunning, isWaiting }: { call: ToolPart; isRunning: boolean; isWaiting: boolean }): ReactNode {
  const took = call.startedAt && call.endedAt ? new Date(call.endedAt).getTime() - new Date(call.startedAt).getTime() : null
  if (isWaiting) return <span className={styles.state}>{t.waiting}</span>
  if (isRunning) {
    return (
      <span className={styles.state}>
        <LoaderCircle size={14} aria-hidden className={styles.spin} />
        {t.running}
      </span>
    )
  }
  return (
    <span className={styles.state}>
      {took !== null && duration(took)}
      {call.result?.is_error ? (
        <CircleAlert size={14} role="img" aria-label={t.failed} className={styles.bad} />
      ) : (
        call.result && <Check size={14} role="img" aria-label={t.done} className={styles.good} />
      )}
    </span>
  )
}
