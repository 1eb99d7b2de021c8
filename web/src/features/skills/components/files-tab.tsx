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
      lead="Scripts, references and templates that the instructions speak of. A run gets them in the skill’s own folder. Each change of a file is a new version."
    >
      <FileList skill={skill} />
      <div className={styles.add} data-over={drop.isOver || undefined} {...drop.handlers}>
        <TextField label="Into the folder" value={folder} placeholder="scripts" spellCheck={false} findings={[]} onChange={setFolder} />
        <label className={styles.program}>
          <input type="checkbox" checked={isProgram} onChange={(event) => setIsProgram(event.target.checked)} />
          Can be run as a program
        </label>
        <FileButton label="Add files" isMultiple isBusy={progress !== null} onFiles={add} />
        <p className={styles.hint}>{drop.isOver ? 'Let go to add them.' : 'Or drop them here. At most 2 MB each, 8 MB in all.'}</p>
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
