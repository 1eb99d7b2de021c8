import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Fact } from '@/components/ui/fact'
import { Section } from '@/components/ui/section'
import type { SkillSummary } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { Experience } from './experience'
import { t } from '../texts'
import styles from './skill-list.module.css'

export function SkillList({ title, skills }: { title: string; skills: readonly SkillSummary[] }): ReactNode {
  return (
    <Section title={title}>
      <ul className={styles.list}>
        {skills.map((skill) => (
          <Item key={skill.id} skill={skill} />
        ))}
      </ul>
    </Section>
  )
}

function Item({ skill }: { skill: SkillSummary }): ReactNode {
  const { name, display_name: shown, description, version, label, usage } = skill
  return (
    <li className={styles.item}>
      <div className={styles.what}>
        <Link to="/skills/$name" params={{ name }} className={styles.name}>
          {shown ?? name}
        </Link>
        {shown && <code className={styles.word}>/{name}</code>}
        <p className={styles.description} dir="auto">{description}</p>
        {skill.needs_review && <p className={styles.description}>{t.switchedOffUntilAccepted}</p>}
      </div>
      <dl className={styles.facts}>
        <Fact name={t.version}>
          {version}
          {label && <small> ({label})</small>}
        </Fact>
        <Fact name={t.experience}>
          <Experience value={skill.experience ?? null} />
        </Fact>
        <Fact name={t.used} title={usage.last_used_at ? t.last(fullTime(usage.last_used_at)) : undefined}>
          {usage.offered === 0 && usage.invoked === 0 ? t.never : `${usage.offered} ${usage.offered === 1 ? t.run : t.runs}`}
          {usage.last_used_at && <small> {shortTime(usage.last_used_at)}</small>}
        </Fact>
      </dl>
    </li>
  )
}
