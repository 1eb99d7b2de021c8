import type { ReactNode } from 'react'
import { Fact } from '@/components/ui/fact'
import type { Skill } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { Experience } from './experience'
import styles from './skill-page.module.css'

export function SkillFacts({ skill }: { skill: Skill }): ReactNode {
  const { usage } = skill
  return (
    <dl className={styles.facts}>
      <Fact name="Version">
        {skill.version} <small title={fullTime(skill.updated_at)}>of {shortTime(skill.updated_at)}</small>
      </Fact>
      <Fact name="Experience">
        <Experience value={skill.experience ?? null} />
      </Fact>
      <Fact name="Runs">{usage.offered}</Fact>
      <Fact name="Used by name">
        {usage.invoked}
        {usage.invoked > 0 && <small> {outcomes(usage)}</small>}
      </Fact>
    </dl>
  )
}

function outcomes({ completed, failed, stopped }: Skill['usage']): string {
  const parts = [`${completed} completed`, failed > 0 && `${failed} failed`, stopped > 0 && `${stopped} stopped`]
  return parts.filter(Boolean).join(', ')
}
