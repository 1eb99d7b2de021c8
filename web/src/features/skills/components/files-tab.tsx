import { type ReactNode, useState } from 'react'
import { Section } from '@/components/ui/section'
import type { Skill } from '@/lib/api/types'
import { useFileDrop } from '../model/use-file-drop'
import { useUpload } from '../model/use-upload'
import { FileButton } from '@/components/ui/file-button'
import { FileList } from './file-list'
import styles from './files-tab.module.css'
import { TextField } from './found'
import { RichText } from '@/components/ui/rich-text'
import { t } from '../texts'

export function FilesTab({ skill }: { skill: Skill }): ReactNode {
  const [folder, setFolder] = useState('')
  const [isProgram, setIsProgram] = useState(false)
  const { progress, failures, send } = useUpload(skill.name)
  const add = (files: File[]): void => void send(files, folder, isProgram)
  const drop = useFileDrop(add)
  return (
    <Section
      title={t.filesBesideSkillMd}
      lead={t.scriptsReferencesAndTemplatesForTheInstructions}
    >
      <FileList skill={skill} />
      <div className={styles.add} data-over={drop.isOver || undefined} {...drop.handlers}>
        <TextField label={t.folder} value={folder} placeholder={t.scripts} spellCheck={false} findings={[]} onChange={setFolder} />
        <label className={styles.program}>
          <input type="checkbox" checked={isProgram} onChange={(event) => setIsProgram(event.target.checked)} />
          {t.executable}
        </label>
        <FileButton label={t.addFiles} isMultiple isBusy={progress !== null} onFiles={add} />
        <p className={styles.hint}>{drop.isOver ? t.dropToAddThem : t.orDropThemHereAtMost2}</p>
        {progress && (
          <label className={styles.progress}>
            {t.adding} {progress.name}
            <progress value={progress.done} max={progress.all} />
          </label>
        )}
      </div>
      {failures.length > 0 && (
        <ul className={styles.failures} role="alert">
          {failures.map(({ name, reason }) => (
            <li key={name}>
              <RichText text={t.fileWasNotAdded} parts={{ name: <strong>{name}</strong>, reason }} />
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}
