import { Check, ChevronRight, CircleAlert, LoaderCircle, Wrench } from 'lucide-react'
import { type ReactNode, memo, useState } from 'react'
import { VisibleText } from '@/components/ui/visible-text'
import type { ToolPart } from '@/feed/state'
import { duration } from '@/lib/format'
import { withoutHidden } from '@/lib/hidden-characters'
import { briefOf, resultText } from '../model/tool-input'
import { OutputText } from './output-text'
import styles from './tool-card.module.css'
import { ToolInput } from './tool-input'

interface ToolCardProps {
  call: ToolPart
  /** Whether the run is still active. */
  isLive: boolean
  /** Whether the call waits for approval. */
  isWaiting: boolean
}

export const ToolCard = memo(function ToolCard({ call, isLive, isWaiting }: ToolCardProps): ReactNode {
  const isRunning = isLive && call.result === null && !isWaiting
  const isError = call.result?.is_error ?? false
  const [choice, setChoice] = useState<boolean | null>(null)
  // Opens automatically while running or failed, until the user toggles it.
  const isOpen = choice ?? (isError || (isRunning && call.output !== ''))

  return (
    <section className={styles.card} data-error={isError || undefined} aria-label={`Tool ${withoutHidden(call.name)}`}>
      <button type="button" className={styles.head} aria-expanded={isOpen} onClick={() => setChoice(!isOpen)}>
        <ChevronRight size={14} aria-hidden className={styles.arrow} />
        <Wrench size={14} aria-hidden className={styles.tool} />
        <span className={styles.name}>
          <VisibleText text={call.name} />
        </span>
        <code className={styles.brief}>
          <VisibleText text={briefOf(call.input)} />
        </code>
        <State call={call} isRunning={isRunning} isWaiting={isWaiting} />
      </button>
      {isOpen && (
        <div className={styles.details}>
          {!isWaiting && <ToolInput input={call.input} />}
          {call.output !== '' && <OutputText label="Output" text={call.output} isGrowing={isRunning} />}
          {call.result && <OutputText label={isError ? 'Error' : 'Result'} text={resultText(call.result.content)} isError={isError} />}
        </div>
      )}
    </section>
  )
})

function State({ call, isRunning, isWaiting }: { call: ToolPart; isRunning: boolean; isWaiting: boolean }): ReactNode {
  const took = call.startedAt && call.endedAt ? new Date(call.endedAt).getTime() - new Date(call.startedAt).getTime() : null
  if (isWaiting) return <span className={styles.state}>waits</span>
  if (isRunning) {
    return (
      <span className={styles.state}>
        <LoaderCircle size={14} aria-hidden className={styles.spin} />
        runs
      </span>
    )
  }
  return (
    <span className={styles.state}>
      {took !== null && duration(took)}
      {call.result?.is_error ? (
        <CircleAlert size={14} role="img" aria-label="failed" className={styles.bad} />
      ) : (
        call.result && <Check size={14} role="img" aria-label="done" className={styles.good} />
      )}
    </span>
  )
}
