import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import textStyles from '@/components/ui/text.module.css'
import { VisibleText } from '@/components/ui/visible-text'
import { explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { Skill } from '@/lib/api/types'
import { acceptSkill } from '../api/skills'
import { t } from '../texts'
import styles from './skill-page.module.css'

/** What an imported skill asks for: all of it is off until a person has accepted it. */
export function SkillReview({ skill }: { skill: Skill }): ReactNode {
  const queries = useQueryClient()
  const accept = useMutation({
    mutationFn: () => acceptSkill(skill.name, skill.version),
    onSettled: () => queries.invalidateQueries({ queryKey: queryKeys.skills.all }),
  })
  const { review } = skill
  if (!review) return null
  return (
    <section className={styles.changed} aria-label={t.reviewOfTheImport}>
      <div>
        <p>{t.thisSkillWasImportedWhatItAsks}</p>
        <ul>
          {review.tools.length > 0 && <Asked what={t.toolsThatRunWithoutAskingWhenThe} names={review.tools} />}
          {review.mcp_servers.length > 0 && (
            <Asked what={t.mcpServersLead} names={review.mcp_servers.map((server) => `${server.name}: ${server.target}`)} />
          )}
          {review.scripts.length > 0 && <Asked what={t.scriptsLead} names={review.scripts} />}
        </ul>
        {accept.error && <p className={textStyles.problem}>{explain(accept.error)}</p>}
      </div>
      <Button isBusy={accept.isPending} onClick={() => accept.mutate()}>
        {t.accept}
      </Button>
    </section>
  )
}

function Asked({ what, names }: { what: string; names: readonly string[] }): ReactNode {
  return (
    <li>
      {what}{' '}
      {names.map((name) => (
        <code key={name}>
          <VisibleText text={name} />{' '}
        </code>
      ))}
    </li>
  )
}
