import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemNote } from '@/components/ui/problem-note'
import type { Skill, SkillVersionSummary } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { versionsQuery } from '../api/skills'
import { VersionChanges } from './version-changes'
import { t } from '../texts'
import styles from './versions-tab.module.css'

export function VersionsTab({ skill }: { skill: Skill }): ReactNode {
  const { data: versions, error, refetch } = useQuery(versionsQuery(skill.name))
  const [shown, setShown] = useState<number | null>(null)
  if (error) return <ProblemNote title={t.couldNotLoadVersions} error={error} onRetry={() => void refetch()} />
  return (
    <ol className={styles.list} aria-label={t.versionsNewestFirst}>
      {versions?.map((version) => (
        <Version
          key={version.version}
          skill={skill}
          version={version}
          all={versions}
          isShown={shown === version.version}
          onToggle={() => setShown(shown === version.version ? null : version.version)}
        />
      ))}
    </ol>
  )
}

interface VersionProps {
  skill: Skill
  version: SkillVersionSummary
  all: readonly SkillVersionSummary[]
  isShown: boolean
  onToggle: () => void
}

function Version({ skill, version, all, isShown, onToggle }: VersionProps): ReactNode {
  const { version: number, label, note, created_at: at } = version
  return (
    <li className={styles.version}>
      <div className={styles.head}>
        <div className={styles.what}>
          <strong>{t.versionWith(number)}</strong>
          {label && <span className={styles.label}>{label}</span>}
          {number === skill.version && <span className={styles.current}>{t.current}</span>}
          <p>
            <time dateTime={at} title={fullTime(at)}>
              {shortTime(at)}
            </time>
            {note && ` · ${note}`}
          </p>
        </div>
        <Button size="small" aria-expanded={isShown} aria-label={t.changesOfVersion(isShown ? t.hide : t.show, number)} onClick={onToggle}>
          {isShown ? t.hide : t.changes}
        </Button>
      </div>
      {isShown && <VersionChanges skill={skill} version={number} others={all.map((one) => one.version).filter((one) => one !== number)} />}
    </li>
  )
}
