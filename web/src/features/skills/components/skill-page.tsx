import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Download, Ellipsis, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import { Menu } from '@/components/ui/menu'
import { ProblemNote } from '@/components/ui/problem-note'
import { ApiError } from '@/lib/api/client'
import type { Skill } from '@/lib/api/types'
import { exportAddress } from '../api/skill-files'
import { skillQuery } from '../api/skills'
import type { Tab } from '../model/tabs'
import { DeleteSkillDialog } from './delete-skill-dialog'
import { EditTab } from './edit-tab'
import { FilesTab } from './files-tab'
import { SkillFacts } from './skill-facts'
import styles from './skill-page.module.css'
import { SkillReview } from './skill-review'
import { SkillTabs } from './skill-tabs'
import { TrainingTab } from './training-tab'
import { VersionsTab } from './versions-tab'
import { t } from '../texts'

export function SkillPage({ name, tab }: { name: string; tab: Tab }): ReactNode {
  const { data: skill, error, refetch } = useQuery(skillQuery(name))
  const isMissing = error instanceof ApiError && (error.status === 404 || error.status === 400)
  return (
    <PageBody title={skill?.display_name ?? name} width="narrow" back={<Link to="/skills">{t.skills}</Link>} actions={skill && <Actions skill={skill} />}>
      {skill && <Parts skill={skill} tab={tab} />}
      {!skill && !error && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
      {isMissing && !skill && (
        <EmptyState title={t.skillNotFound} detail={t.itMayHaveBeenDeleted}>
          <Link to="/skills">{t.showAllSkills}</Link>
        </EmptyState>
      )}
      {error && !isMissing && <ProblemNote title={t.couldNotLoadTheSkill} error={error} onRetry={() => void refetch()} />}
    </PageBody>
  )
}

function Parts({ skill, tab }: { skill: Skill; tab: Tab }): ReactNode {
  return (
    <>
      <SkillReview skill={skill} />
      <SkillFacts skill={skill} />
      <SkillTabs skill={skill} current={tab} />
      {/* What is being typed stays while another part is looked at. */}
      <div hidden={tab !== 'edit'}>
        <EditTab skill={skill} />
      </div>
      {tab === 'files' && <FilesTab skill={skill} />}
      {tab === 'versions' && <VersionsTab skill={skill} />}
      {tab === 'training' && <TrainingTab skill={skill} />}
    </>
  )
}

function Actions({ skill }: { skill: Skill }): ReactNode {
  const [isDeleting, setIsDeleting] = useState(false)
  return (
    <>
      <a className={styles.export} href={exportAddress(skill.name)} download>
        <Download size={15} aria-hidden />
        {t.export}
      </a>
      <Menu
        label={t.skillActions}
        icon={<Ellipsis size={18} aria-hidden />}
        items={[{ label: t.deleteSkill, icon: <Trash2 size={15} aria-hidden />, isDangerous: true, onSelect: () => setIsDeleting(true) }]}
      />
      {isDeleting && <DeleteSkillDialog skill={skill} onClose={() => setIsDeleting(false)} />}
    </>
  )
}
