import type { ReactNode } from 'react'
import type { Skill } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { Experience } from './experience'
import styles from './skill-page.module.css'

export function SkillFacts({ skill }: { skill: Skill }): ReactNode {
  const { usage } = skill
  return (
    <dl className={styles.facts}>
      <div>
        <dt>Version</dt>
        <dd>
          {skill.version} <small title={fullTime(skill.updated_at)}>of {shortTime(skill.updated_at)}</small>
        </dd>
      </div>
      <div>
        <dt>Experience</dt>
        <dd>
          <Experience value={skill.experience ?? null} />
        </dd>
      </div>
      <div>
        <dt>Runs that had it</dt>
        <dd>{usage.offered}</dd>
      </div>
      <div>
        <dt>Called by name</dt>
        <dd>
          {usage.invoked}
          {usage.invoked > 0 && <small> {outcomes(usage)}</small>}
        </dd>
      </div>
    </dl>
  )
}

function outcomes({ completed, failed, stopped }: Skill['usage']): string {
  const parts = [`${completed} completed`, failed > 0 && `${failed} failed`, stopped > 0 && `${stopped} stopped`]
  return parts.filter(Boolean).join(', ')
}
