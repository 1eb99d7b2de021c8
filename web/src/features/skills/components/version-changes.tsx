import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { RotateCcw } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemNote } from '@/components/ui/problem-note'
import { Select } from '@/components/ui/select'
import { queryKeys } from '@/lib/api/query-keys'
import type { Skill } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { restoreVersion, skillQuery, versionQuery } from '../api/skills'
import { UnifiedDiff } from './unified-diff'
import { t } from '../texts'
import styles from './versions-tab.module.css'

interface VersionChangesProps {
  skill: Skill
  version: number
  /** What it can be compared with, newest first. */
  others: readonly number[]
}

export function VersionChanges({ skill, version, others }: VersionChangesProps): ReactNode {
  const [against, setAgainst] = useState<number | null>(others.find((other) => other < version) ?? others.at(-1) ?? null)
  const { data, error, refetch } = useQuery(versionQuery(skill.name, version, against))
  const queries = useQueryClient()
  const restore = useMutation({
    mutationFn: () => restoreVersion(skill.name, version),
    onSuccess: async (restored) => {
      queries.setQueryData(skillQuery(skill.name).queryKey, restored)
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
      notify(restored.version === skill.version ? t.versionIsAlreadyTheCurrentOne(version) : t.versionIsBackAsVersion(version, restored.version))
    },
  })
  return (
    <div className={styles.changes}>
      <div className={styles.tools}>
        {against !== null && (
          <Select
            label={t.comparedWith}
            value={String(against)}
            options={others.map((other) => ({ value: String(other), label: t.versionWith(other) }))}
            onChange={(value) => setAgainst(Number(value))}
          />
        )}
        {version !== skill.version && (
          <Button isBusy={restore.isPending} onClick={() => restore.mutate()}>
            <RotateCcw size={14} aria-hidden />
            {t.restoreVersion} {version}
          </Button>
        )}
      </div>
      {restore.error && <ProblemNote title={t.itWasNotRestored} error={restore.error} />}
      {error && <ProblemNote title={t.couldNotLoadTheVersion} error={error} onRetry={() => void refetch()} />}
      {data && (against === null ? <p className={styles.first}>{t.thisIsTheOnlyVersion}</p> : <UnifiedDiff diff={data.diff} label={t.changesFromVersionTo(against, version)} />)}
    </div>
  )
}
