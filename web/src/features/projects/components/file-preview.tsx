import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Download, X } from 'lucide-react'
import type { ReactNode } from 'react'
import { CodeBlock } from '@/components/ui/code-block'
import iconLink from '@/components/ui/icon-link.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { bytes } from '@/lib/format'
import { type FileStart, contentAddress, contentQuery } from '../api/project-files'
import { nameOf } from '../model/paths'
import { previewOf } from '../model/preview'
import { t } from '../texts'
import styles from './file-preview.module.css'

/** What is in a file: a picture, or the start of a text. Everything else can be downloaded. */
export function FilePreview({ projectId, path }: { projectId: string; path: string }): ReactNode {
  const { data: start, error, refetch } = useQuery(contentQuery(projectId, path))
  return (
    <section className={styles.preview} aria-label={path}>
      <header>
        <h2 dir="auto">{path}</h2>
        {start && <span className={styles.size}>{bytes(start.size)}</span>}
        <a className={iconLink.link} href={contentAddress(projectId, path)} download={nameOf(path)} aria-label={t.downloadFile(nameOf(path))} title={t.download}>
          <Download size={16} aria-hidden />
        </a>
        <Link to="/projects/$projectId" params={{ projectId }} search={{}} className={iconLink.link} aria-label={t.closeTheFile} title={t.closeTheFile}>
          <X size={16} aria-hidden />
        </Link>
      </header>
      {error && <ProblemNote title={t.couldNotReadTheFile} error={error} onRetry={() => void refetch()} />}
      {!start && !error && <p className={styles.note}>{t.loading}</p>}
      {start && <Content projectId={projectId} path={path} start={start} />}
    </section>
  )
}

function Content({ projectId, path, start }: { projectId: string; path: string; start: FileStart }): ReactNode {
  const preview = previewOf(path, start.content)
  switch (preview.kind) {
    case 'empty':
      return <p className={styles.note}>{t.theFileIsEmpty}</p>
    case 'binary':
      return <p className={styles.note}>{t.cannotBeShown}</p>
    case 'image':
      return <img className={styles.picture} src={contentAddress(projectId, path)} alt={path} />
    case 'text':
      return (
        <>
          <CodeBlock code={preview.text} language={preview.language} />
          {start.size > start.content.length && <p className={styles.note}>{t.onlyTheStartIsShown(bytes(start.content.length), bytes(start.size))}</p>}
        </>
      )
  }
}
