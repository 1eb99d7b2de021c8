import { Check, CircleMinus, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { ProblemNote } from '@/components/ui/problem-note'
import { Section } from '@/components/ui/section'
import type { Project, ProjectIsolation } from '@/lib/api/types'
import { isolationLines, levelWord, tierSentence } from '../model/isolation'
import { t } from '../texts'
import styles from './sandbox-tab.module.css'

/** What the sandbox of the project enforces on this machine, and what it does not. */
export function SandboxTab({ project }: { project: Project }): ReactNode {
  const { isolation, isolation_error: problem, network } = project
  if (!isolation) return <ProblemNote title={t.noSandboxWorks} error={new Error(problem ?? '')} />
  return (
    <>
      <Section title={t.whatIsEnforced} lead={tierSentence(isolation.tier)}>
        <ul className={styles.lines}>
          {isolationLines(isolation).map(({ name, detail, level }) => (
            <li key={name} data-level={level}>
              <Mark level={level} />
              <strong>{name}</strong>
              <span>{detail}</span>
              <em>{levelWord(level)}</em>
            </li>
          ))}
        </ul>
        {isolation.warnings.length > 0 && (
          <ul className={styles.warnings} aria-label={t.whatIsNotEnforced}>
            {isolation.warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        )}
      </Section>
      <Section title={t.allowedHosts} lead={network.allow.length === 0 ? t.noHostsAreAllowed : t.programsReachOnlyThese}>
        {network.allow.length > 0 && (
          <ul className={styles.hosts}>
            {network.allow.map((host) => (
              <li key={host}>
                <code>{host}</code>
              </li>
            ))}
          </ul>
        )}
      </Section>
    </>
  )
}

function Mark({ level }: { level: ProjectIsolation['file'] }): ReactNode {
  if (level === 'full') return <Check size={15} aria-hidden />
  return level === 'partial' ? <TriangleAlert size={15} aria-hidden /> : <CircleMinus size={15} aria-hidden />
}
