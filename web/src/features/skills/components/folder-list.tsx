import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Section } from '@/components/ui/section'
import type { FolderSkill } from '@/lib/api/types'
import styles from './skill-list.module.css'

interface FolderListProps {
  folders: readonly FolderSkill[]
  isBusy: boolean
  onImport: (folder: string) => void
}

export function FolderList({ folders, isBusy, onImport }: FolderListProps): ReactNode {
  return (
    <Section
      title="In the server’s folder"
      lead="Skills in the data folder. Agents can use them as they are; import one to edit, version and train it."
    >
      <ul className={styles.list}>
        {folders.map(({ name, description }) => (
          <li key={name} className={styles.folder}>
            <div className={styles.what}>
              <span className={styles.name}>{name}</span>
              {description && <p className={styles.description}>{description}</p>}
            </div>
            <Button size="small" aria-label={`Import ${name}`} isBusy={isBusy} onClick={() => onImport(name)}>
              Import
            </Button>
          </li>
        ))}
      </ul>
    </Section>
  )
}
