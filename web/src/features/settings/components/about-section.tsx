import { useQuery } from '@tanstack/react-query'
import { CircleCheck, CircleX, RotateCw, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemNote } from '@/components/ui/problem-note'
import { Section } from '@/components/ui/section'
import { WithCode } from '@/components/ui/with-code'
import { doctorQuery } from '../api/settings'
import { type Check, worstFirst } from '../model/checks'
import styles from './settings.module.css'

/** The server version and its self-check, the same as `greenroom doctor`. */
export function AboutSection(): ReactNode {
  const { data: report, error, isFetching, refetch } = useQuery(doctorQuery)
  return (
    <Section
      isCompact
      title="This server"
      lead={report ? `Greenroom ${report.version}` : 'Checking…'}
      action={
        <Button isBusy={isFetching} onClick={() => void refetch()}>
          <RotateCw size={14} aria-hidden />
          {isFetching ? 'Checking…' : 'Check again'}
        </Button>
      }
    >
      {error && <ProblemNote title="Could not check the server" error={error} onRetry={() => void refetch()} />}
      {report && (
        <ul className={styles.checks}>
          {worstFirst(report.checks).map((check) => (
            <CheckRow key={check.name} check={check} />
          ))}
        </ul>
      )}
    </Section>
  )
}

const icons = { ok: CircleCheck, warn: TriangleAlert, fail: CircleX }
const words = { ok: 'OK', warn: 'Warning', fail: 'Error' }

function CheckRow({ check }: { check: Check }): ReactNode {
  const Icon = icons[check.status]
  return (
    <li data-status={check.status}>
      <Icon size={16} role="img" aria-label={words[check.status]} />
      <div>
        <strong>{check.name}</strong>
        <p><WithCode text={check.detail} /></p>
        {check.advice && <p className={styles.advice}><WithCode text={check.advice} /></p>}
      </div>
    </li>
  )
}
