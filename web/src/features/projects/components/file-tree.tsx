import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ChevronRight, Ellipsis, FileArchive, FileDown, FileSymlink, FileText, Folder, FolderOpen, Pencil, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Menu } from '@/components/ui/menu'
import { ProblemNote } from '@/components/ui/problem-note'
import type { ProjectEntry } from '@/lib/api/types'
import { bytes, fullTime } from '@/lib/format'
import { projectFolderQuery } from '@/lib/api/queries'
import { archiveAddress, contentAddress } from '../api/project-files'
import { childPath, isWithin } from '../model/paths'
import { DeleteFileDialog } from './delete-file-dialog'
import { MoveFileDialog } from './move-file-dialog'
import { t } from '../texts'
import styles from './file-tree.module.css'

interface FileTreeProps {
  projectId: string
  /** The file that is shown. */
  file: string | null
  /** Where uploads go. */
  folder: string
  onFolder: (path: string) => void
}

type Dialog = { kind: 'move' | 'delete'; path: string; isFolder: boolean }

interface TreeContext extends FileTreeProps {
  isOpen: (path: string) => boolean
  onToggle: (path: string) => void
  onDialog: (dialog: Dialog) => void
}

/** Folders are read when they are opened. */
export function FileTree(props: FileTreeProps): ReactNode {
  const { projectId, file, onFolder } = props
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map())
  const [dialog, setDialog] = useState<Dialog | null>(null)
  // A link to a file opens the folders around it.
  const isOpen = (path: string): boolean => chosen.get(path) ?? (file !== null && isWithin(file, path))
  const onToggle = (path: string): void => {
    setChosen(new Map(chosen).set(path, !isOpen(path)))
    onFolder(path)
  }
  const close = (): void => setDialog(null)
  return (
    <div className={styles.tree}>
      <FolderList path="" context={{ ...props, isOpen, onToggle, onDialog: setDialog }} />
      {dialog?.kind === 'move' && <MoveFileDialog projectId={projectId} path={dialog.path} onClose={close} />}
      {dialog?.kind === 'delete' && <DeleteFileDialog projectId={projectId} path={dialog.path} isFolder={dialog.isFolder} onClose={close} />}
    </div>
  )
}

function FolderList({ path, context }: { path: string; context: TreeContext }): ReactNode {
  const { data, error, refetch } = useQuery(projectFolderQuery(context.projectId, path))
  if (error && !data) return <ProblemNote title={t.couldNotLoadTheFolder} error={error} onRetry={() => void refetch()} />
  if (!data) return <p className={styles.note}>{t.loading}</p>
  if (data.entries.length === 0) return <p className={styles.note}>{path === '' ? t.noFilesYet : t.emptyFolder}</p>
  return (
    <>
      <ul aria-label={path === '' ? t.files : path}>
        {data.entries.map((entry) => (
          <Entry key={entry.name} entry={entry} path={childPath(path, entry.name)} context={context} />
        ))}
      </ul>
      {data.truncated && <p className={styles.note}>{t.onlyTheFirstAreListed(data.entries.length)}</p>}
    </>
  )
}

function Entry({ entry, path, context }: { entry: ProjectEntry; path: string; context: TreeContext }): ReactNode {
  const { projectId, file, folder, isOpen, onToggle, onDialog } = context
  const isFolder = entry.kind === 'folder'
  const isShown = isFolder && isOpen(path)
  const address = isFolder ? archiveAddress(projectId, path) : contentAddress(projectId, path)
  const items = [
    { label: isFolder ? t.downloadAsZip : t.download, icon: isFolder ? <FileArchive size={15} aria-hidden /> : <FileDown size={15} aria-hidden />, onSelect: () => save(address, entry.name) },
    { label: t.moveOrRename, icon: <Pencil size={15} aria-hidden />, onSelect: () => onDialog({ kind: 'move', path, isFolder }) },
    { label: t.delete, icon: <Trash2 size={15} aria-hidden />, isDangerous: true, onSelect: () => onDialog({ kind: 'delete', path, isFolder }) },
  ]
  return (
    <li>
      <div className={styles.entry} data-chosen={(isFolder && path === folder) || undefined}>
        {isFolder ? (
          <button type="button" className={styles.name} aria-expanded={isShown} onClick={() => onToggle(path)}>
            <ChevronRight size={14} aria-hidden className={styles.arrow} />
            {isShown ? <FolderOpen size={15} aria-hidden /> : <Folder size={15} aria-hidden />}
            <span dir="auto">{entry.name}</span>
          </button>
        ) : entry.kind === 'file' ? (
          <Link to="/projects/$projectId" params={{ projectId }} search={{ file: path }} className={styles.name} aria-current={path === file ? 'true' : undefined} activeOptions={{ includeSearch: true }}>
            <FileText size={15} aria-hidden />
            <span dir="auto">{entry.name}</span>
          </Link>
        ) : (
          <span className={styles.name} title={t.linksAreNotFollowed}>
            <FileSymlink size={15} aria-hidden />
            <span dir="auto">{entry.name}</span>
          </span>
        )}
        {entry.kind === 'file' && (
          <span className={styles.size} title={fullTime(entry.modified_at)}>
            {bytes(entry.bytes)}
          </span>
        )}
        <Menu label={t.actionsFor(entry.name)} icon={<Ellipsis size={15} aria-hidden />} items={entry.kind === 'link' || entry.kind === 'special' ? items.slice(1) : items} />
      </div>
      {isShown && <FolderList path={path} context={context} />}
    </li>
  )
}

function save(address: string, name: string): void {
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
}
