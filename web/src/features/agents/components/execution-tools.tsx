import { Check, CircleAlert, LoaderCircle, Wrench } from 'lucide-react'
import type { ReactNode } from 'react'
import { VisibleText } from '@/components/ui/visible-text'
import type { ToolCall } from '../model/execution'
import { t } from '../texts'
import styles from './execution-tools.module.css'

/** Longer ones are read in the room. */
const longest = 4000

export function ExecutionTools({ tools, isWaiting }: { tools: readonly ToolCall[]; isWaiting: boolean }): ReactNode {
  if (tools.length === 0) return null
  return (
    <ul className={styles.tools} aria-label={t.toolsUsed}>
      {tools.map((call) => (
        <li key={call.id}>
          <details>
            <summary>
              <Wrench size={13} aria-hidden />
              <span className={styles.name}>
                <VisibleText text={call.name} />
              </span>
              <code>
                <VisibleText text={brief(call.input)} />
              </code>
              {call.state === 'running' && !isWaiting && <LoaderCircle size={13} role="img" aria-label={t.runs} className={styles.spin} />}
              {call.state === 'done' && <Check size={13} role="img" aria-label={t.doneWord} className={styles.good} />}
              {call.state === 'failed' && <CircleAlert size={13} role="img" aria-label={t.failed} className={styles.bad} />}
            </summary>
            <pre>
              <VisibleText text={whole(call.input)} />
            </pre>
            {call.content !== null && call.content !== undefined && <pre>{whole(call.content)}</pre>}
          </details>
        </li>
      ))}
    </ul>
  )
}

function brief(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value ?? '')).slice(0, 200)
}

function whole(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null, null, 2)
  return text.length > longest ? t.theRestIsInItsRoom(text.slice(0, longest)) : text
}
