import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Section } from '@/components/ui/section'
import type { FolderSkill } from '@/lib/api/types'
import { t } from '../texts'
import styles from './skill-list.module.css'

interface FolderListProps {
  folders: readonly FolderSkill[]
  isBusy: boolean
  onImport: (folder: string) => void
}

export function FolderList({ folders, isBusy, onImport }: FolderListProps): ReactNode {
  return (
    <Section
      title={t.inTheServersFolder}
      lead={t.skillsInTheDataFolderAgentsCan}
    >
      <ul className={styles.list}>
        {folders.map(({ name, description }) => (
          <li key={name} className={styles.folder}>
            <div className={styles.what}>
              <span className={styles.name}>{name}</span>
              {description && <p className={styles.description} dir="auto">{description}</p>}
            </div>
            <Button size="small" aria-label={t.import(name)} isBusy={isBusy} onClick={() => onImport(name)}>
              {t.importTitle}
            </Button>
          </li>
        ))}
      </ul>
    </Section>
  )
}
