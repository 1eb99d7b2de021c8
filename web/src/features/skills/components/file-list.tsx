import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Download, FileText, SquareTerminal, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { IconButton } from '@/components/ui/button'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import iconLink from '@/components/ui/icon-link.module.css'
import { queryKeys } from '@/lib/api/query-keys'
import type { Skill, SkillFile } from '@/lib/api/types'
import { bytes } from '@/lib/format'
import { notify } from '@/lib/notices'
import { deleteFile, fileAddress } from '../api/skill-files'
import { skillQuery } from '../api/skills'
import { t } from '../texts'
import styles from './files-tab.module.css'

export function FileList({ skill }: { skill: Skill }): ReactNode {
  const [deleting, setDeleting] = useState<SkillFile | null>(null)
  if (skill.files.length === 0) return <p className={styles.nothing}>{t.noFilesASkillCanBeInstructions}</p>
  return (
    <>
      <ul className={styles.files} aria-label={t.files}>
        {skill.files.map((file) => (
          <li key={file.path}>
            {file.executable ? <SquareTerminal size={16} aria-hidden /> : <FileText size={16} aria-hidden />}
            <span className={styles.path}>{file.path}</span>
            <span className={styles.size}>
              {bytes(file.bytes)}
              {file.executable && t.program}
            </span>
            <a className={iconLink.link} href={fileAddress(skill.name, file.path)} download={file.path.split('/').at(-1)} aria-label={t.download(file.path)} title={t.downloadTitle}>
              <Download size={16} aria-hidden />
            </a>
            <IconButton label={t.deleteWith(file.path)} onClick={() => setDeleting(file)}>
              <Trash2 size={16} aria-hidden />
            </IconButton>
          </li>
        ))}
      </ul>
      {deleting && <DeleteFile skill={skill} file={deleting} onClose={() => setDeleting(null)} />}
    </>
  )
}

function DeleteFile({ skill, file, onClose }: { skill: Skill; file: SkillFile; onClose: () => void }): ReactNode {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () => deleteFile(skill.name, file.path),
    onSuccess: async (changed) => {
      queries.setQueryData(skillQuery(skill.name).queryKey, changed)
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
      notify(t.wasDeleted(file.path))
      onClose()
    },
  })
  return (
    <ConfirmDialog title={t.delete(file.path)} keep={t.cancel} confirm={t.deleteFile} isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>{t.theSkillGetsANewVersionWithout}</p>
    </ConfirmDialog>
  )
}
