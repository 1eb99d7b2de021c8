import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useMemo, useState } from 'react'
import { FileButton } from '@/components/ui/file-button'
import { queryKeys } from '@/lib/api/query-keys'
import type { Project } from '@/lib/api/types'
import { useStore } from '@/lib/store'
import { usePageDrop } from '@/lib/use-page-drop'
import { uploadToProject } from '../api/project-files'
import { folderOf } from '../model/paths'
import { UploadQueue } from '../model/upload-queue'
import { FilePreview } from './file-preview'
import { FileTree } from './file-tree'
import { UploadList } from './upload-list'
import { t } from '../texts'
import styles from './files-tab.module.css'

/** The files of a project: a tree, what is in one of them, and uploads by button, by drop and by paste. */
export function FilesTab({ project, file }: { project: Project; file: string | null }): ReactNode {
  const [folder, setFolder] = useState(file === null ? '' : folderOf(file))
  const queries = useQueryClient()
  const queue = useMemo(() => {
    const queryKey = queryKeys.projects.files(project.id)
    return new UploadQueue(
      (to, sent, onProgress) => uploadToProject(project.id, to, sent, onProgress),
      () => void queries.invalidateQueries({ queryKey }),
    )
  }, [project.id, queries])
  const uploads = useStore(queue.store)
  const add = (files: Iterable<File>): void => queue.add(folder, files)
  const isOver = usePageDrop(add)
  usePastedFiles(add)
  return (
    <div className={styles.files} data-showing={file !== null || undefined}>
      <div className={styles.side}>
        <div className={styles.upload} data-over={isOver || undefined}>
          <FileButton label={t.upload} isMultiple onFiles={add} />
          <p>{isOver ? t.dropToUpload : t.orDropOrPasteThem(folder === '' ? t.theProjectsFolder : folder)}</p>
        </div>
        <UploadList uploads={uploads} onRetry={(key) => queue.retry(key)} onRemove={(key) => queue.remove(key)} />
        <FileTree projectId={project.id} file={file} folder={folder} onFolder={setFolder} />
      </div>
      {file !== null && <FilePreview key={file} projectId={project.id} path={file} />}
    </div>
  )
}

/** Files that are pasted anywhere on the page; texts are left to the field that has the focus. */
function usePastedFiles(onFiles: (files: Iterable<File>) => void): void {
  useEffect(() => {
    const paste = (event: ClipboardEvent): void => {
      const files = event.clipboardData?.files
      if (!files || files.length === 0) return
      event.preventDefault()
      onFiles(files)
    }
    document.addEventListener('paste', paste)
    return () => document.removeEventListener('paste', paste)
  }, [onFiles])
}
