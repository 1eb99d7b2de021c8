import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { RunState } from '@/feed/state'
import { count, dollars, duration, tokens } from '@/lib/format'
import { t } from '../texts'
import styles from './run-figures.module.css'

/** Time, tokens and cost of one answer. What is not known is not shown as zero. */
export function RunFigures({ run }: { run: RunState }): ReactNode {
  const used = tokens(run.usage)
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = run.usage
  const breakdown = [
    t.inWith(count(input_tokens)),
    t.out(count(output_tokens)),
    cache_read_tokens > 0 && t.fromCache(count(cache_read_tokens)),
    cache_write_tokens > 0 && t.toCache(count(cache_write_tokens)),
  ].filter(Boolean)
  if (run.durationMs === null && used === 0) return null
  return (
    <dl className={styles.figures}>
      {run.durationMs !== null && <Figure name={t.time} value={duration(run.durationMs)} />}
      {used > 0 && <Figure name={t.tokens} value={t.tokensWith(count(used))} hint={breakdown.join(', ')} />}
      {used > 0 && <Figure name={t.cost} value={run.cost === null ? t.costUnknown : dollars(run.cost)} />}
      {run.model && <Figure name={t.model} value={run.model} />}
      <div>
        <dt className="visually-hidden">{t.itsRun}</dt>
        <dd>
          <Link to="/runs/$runId" params={{ runId: run.id }}>
            {t.details}
          </Link>
        </dd>
      </div>
    </dl>
  )
}

function Figure({ name, value, hint }: { name: string; value: string; hint?: string }): ReactNode {
  return (
    <div title={hint}>
      <dt className="visually-hidden">{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}
