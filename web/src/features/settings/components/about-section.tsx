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
import { t } from '../texts'
import styles from './settings.module.css'

/** The server version and its self-check, the same as `greenroom doctor`. */
export function AboutSection(): ReactNode {
  const providers = useQuery(providersQuery).data?.map(({ name }) => name) ?? []
  const { data: report, error, isFetching, refetch } = useQuery(doctorQuery)
  return (
    <Section
      isCompact
      title={t.thisServer}
      lead={report ? t.greenroom(report.version) : t.checking}
      action={
        <Button isBusy={isFetching} onClick={() => void refetch()}>
          <RotateCw size={14} aria-hidden />
          {isFetching ? t.checking : t.checkAgain}
        </Button>
      }
    >
      {error && <ProblemNote title={t.couldNotCheckTheServer} error={error} onRetry={() => void refetch()} />}
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
const words: Record<CheckLevel, string> = { ok: 'OK', get warn() { return t.warning }, get fail() { return t.error }, get missing() { return t.notSetUp } }

function CheckRow({ check }: { check: ShownCheck }): ReactNode {
  const Icon = icons[check.level]
  return (
    <li data-status={check.level}>
      <Icon size={16} role="img" aria-label={words[check.level]} />
      <div>
        <strong>{check.name}</strong>
        <p>{check.level === 'missing' ? t.notSetUp : <WithCode text={check.detail} />}</p>
        {check.advice && <p className={styles.advice}><WithCode text={check.advice} /></p>}
      </div>
    </li>
  )
}
