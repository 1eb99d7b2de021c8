import { type ReactNode, useState } from 'react'
import { Section } from '@/components/ui/section'
import type { Skill } from '@/lib/api/types'
import { useFileDrop } from '../model/use-file-drop'
import { useUpload } from '../model/use-upload'
import { FileButton } from './file-button'
import { FileList } from './file-list'
import styles from './files-tab.module.css'
import { TextField } from './found'

export function FilesTab({ skill }: { skill: Skill }): ReactNode {
  const [folder, setFolder] = useState('')
  const [isProgram, setIsProgram] = useState(false)
  const { progress, failures, send } = useUpload(skill.name)
  const add = (files: File[]): void => void send(files, folder, isProgram)
  const drop = useFileDrop(add)
  return (
    <Section
      title="Files beside SKILL.md"
      lead="Scripts, references and templates for the instructions. Each change creates a new version."
    >
      <FileList skill={skill} />
      <div className={styles.add} data-over={drop.isOver || undefined} {...drop.handlers}>
        <TextField label="Folder" value={folder} placeholder="scripts" spellCheck={false} findings={[]} onChange={setFolder} />
        <label className={styles.program}>
          <input type="checkbox" checked={isProgram} onChange={(event) => setIsProgram(event.target.checked)} />
          Executable
        </label>
        <FileButton label="Add files" isMultiple isBusy={progress !== null} onFiles={add} />
        <p className={styles.hint}>{drop.isOver ? 'Drop to add them.' : 'Or drop them here. At most 2 MB each, 8 MB in all.'}</p>
        {progress && (
          <label className={styles.progress}>
            Adding {progress.name}
            <progress value={progress.done} max={progress.all} />
          </label>
        )}
      </div>
      {failures.length > 0 && (
        <ul className={styles.failures} role="alert">
          {failures.map(({ name, reason }) => (
            <li key={name}>
              <strong>{name}</strong> was not added. {reason}
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}
