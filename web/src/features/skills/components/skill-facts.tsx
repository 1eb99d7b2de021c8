import type { ReactNode } from 'react'
import { Fact } from '@/components/ui/fact'
import type { Skill } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { Experience } from './experience'
import { t } from '../texts'
import styles from './skill-page.module.css'

export function SkillFacts({ skill }: { skill: Skill }): ReactNode {
  const { usage } = skill
  return (
    <dl className={styles.facts}>
      <Fact name={t.version}>
        {skill.version} <small title={fullTime(skill.updated_at)}>{t.of(shortTime(skill.updated_at))}</small>
      </Fact>
      <Fact name={t.experience}>
        <Experience value={skill.experience ?? null} />
      </Fact>
      <Fact name={t.runsTitle}>{usage.offered}</Fact>
      <Fact name={t.usedByName}>
        {usage.invoked}
        {usage.invoked > 0 && <small> {outcomes(usage)}</small>}
      </Fact>
    </dl>
  )
}

function outcomes({ completed, failed, stopped }: Skill['usage']): string {
  const parts = [t.completed(completed), failed > 0 && t.failed(failed), stopped > 0 && t.stopped(stopped)]
  return parts.filter(Boolean).join(', ')
}
