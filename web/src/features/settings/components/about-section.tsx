import { useQuery } from '@tanstack/react-query'
import { CircleCheck, CircleDashed, CircleX, RotateCw, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemNote } from '@/components/ui/problem-note'
import { Section } from '@/components/ui/section'
import { WithCode } from '@/components/ui/with-code'
import { providersQuery } from '@/lib/api/queries'
import { doctorQuery } from '../api/settings'
import { type CheckLevel, type ShownCheck, worstFirst } from '../model/checks'
import styles from './settings.module.css'

/** The server version and its self-check, the same as `greenroom doctor`. */
export function AboutSection(): ReactNode {
  const providers = useQuery(providersQuery).data?.map(({ name }) => name) ?? []
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
          {worstFirst(report.checks, providers).map((check) => (
            <CheckRow key={check.name} check={check} />
          ))}
        </ul>
      )}
    </Section>
  )
}

const icons: Record<CheckLevel, typeof CircleCheck> = { ok: CircleCheck, warn: TriangleAlert, fail: CircleX, missing: CircleDashed }
const words: Record<CheckLevel, string> = { ok: 'OK', warn: 'Warning', fail: 'Error', missing: 'Not set up' }

function CheckRow({ check }: { check: ShownCheck }): ReactNode {
  const Icon = icons[check.level]
  return (
    <li data-status={check.level}>
      <Icon size={16} role="img" aria-label={words[check.level]} />
      <div>
        <strong>{check.name}</strong>
        <p>{check.level === 'missing' ? 'Not set up' : <WithCode text={check.detail} />}</p>
        {check.advice && <p className={styles.advice}><WithCode text={check.advice} /></p>}
      </div>
    </li>
  )
}
