import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import primaryLink from '@/components/ui/primary-link.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { skillsQuery } from '@/lib/api/queries'
import type { SkillSummary } from '@/lib/api/types'
import { byCategory, matching } from '../model/categories'
import { useFileDrop } from '../model/use-file-drop'
import { useImport } from '../model/use-import'
import { FolderList } from './folder-list'
import { FileButton } from '@/components/ui/file-button'
import { ImportTaken } from './import-taken'
import { SkillList } from './skill-list'
import { WithCode } from '@/components/ui/with-code'
import { t } from '../texts'
import styles from './skills-page.module.css'

/** From here on one looks for a skill by words rather than by eye. */
const searchFrom = 8

export function SkillsPage(): ReactNode {
  const { data, error, refetch } = useQuery(skillsQuery)
  const bringIn = useImport()
  const drop = useFileDrop(([archive]) => archive && bringIn.start({ archive }))
  return (
    <PageBody
      title={t.skills}
      actions={
        <>
          <FileButton label={t.importAZip} accept=".zip,application/zip" isBusy={bringIn.isBusy} onFiles={([archive]) => archive && bringIn.start({ archive })} />
          <Link to="/skills/new" className={primaryLink.link}>
            <Plus size={15} aria-hidden />
            {t.newSkill}
          </Link>
        </>
      }
    >
      <div className={styles.page} data-over={drop.isOver || undefined} {...drop.handlers}>
        <p className={styles.lead}><WithCode text={t.reusableInstructionsThatAgentsLoadWhenA} /></p>
        {bringIn.error != null && <ProblemNote title={t.theSkillWasNotImported} error={bringIn.error} />}
        {error && <ProblemNote title={t.couldNotLoadSkills} error={error} onRetry={() => void refetch()} />}
        {!data && !error && (
          <p className={loading.loading} role="status">
            {t.loading}
          </p>
        )}
        {data && <Found skills={data.skills} />}
        {data && data.folders.length > 0 && <FolderList folders={data.folders} isBusy={bringIn.isBusy} onImport={(folder) => bringIn.start({ folder })} />}
        {drop.isOver && <p className={styles.over}>{t.dropToImportTheSkill}</p>}
      </div>
      <ImportTaken bringIn={bringIn} />
    </PageBody>
  )
}

function Found({ skills }: { skills: readonly SkillSummary[] }): ReactNode {
  const [text, setText] = useState('')
  const found = matching(skills, text)
  if (skills.length === 0) {
    return (
      <EmptyState title={t.noSkillsYet} detail={t.writeOneOrDropAZip}>
        <Link to="/skills/new" className={primaryLink.link}>
          {t.writeASkill}
        </Link>
      </EmptyState>
    )
  }
  return (
    <>
      {skills.length >= searchFrom && (
        <input className={styles.search} type="search" aria-label={t.findASkill} placeholder={t.findASkill} value={text} onChange={(event) => setText(event.target.value)} />
      )}
      {byCategory(found).map(({ name, skills: members }) => (
        <SkillList key={name ?? ''} title={name ?? (skills.some((skill) => skill.category) ? t.withoutACategory : t.allSkills)} skills={members} />
      ))}
      {found.length === 0 && <EmptyState title={t.noSkillsMatch} />}
    </>
  )
}
