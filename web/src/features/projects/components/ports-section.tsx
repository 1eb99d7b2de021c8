import { useMutation, useQuery } from '@tanstack/react-query'
import { ExternalLink } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemText } from '@/components/ui/problem-text'
import { Section } from '@/components/ui/section'
import { openPreview, portsQuery } from '../api/project-commands'
import { t } from '../texts'
import styles from './ports-section.module.css'

/** What listens in the sandbox, and the way to see it: on an origin of its own, which cannot reach the API. */
export function PortsSection({ projectId }: { projectId: string }): ReactNode {
  const { data: ports } = useQuery(portsQuery(projectId))
  if (!ports || ports.length === 0) return null
  return (
    <Section title={t.ports} lead={t.whatListens}>
      <ul className={styles.ports} aria-label={t.ports}>
        {ports.map(({ port, address }) => (
          <Port key={`${address} ${port}`} projectId={projectId} port={port} address={address} />
        ))}
      </ul>
    </Section>
  )
}

function Port({ projectId, port, address }: { projectId: string; port: number; address: string }): ReactNode {
  const preview = useMutation({ mutationFn: () => openPreview(projectId, port) })
  return (
    <li>
      <code>
        {address}:{port}
      </code>
      {preview.data ? (
        <a href={preview.data} target="_blank" rel="noopener noreferrer">
          <ExternalLink size={14} aria-hidden />
          {t.openPreviewOf(port)}
        </a>
      ) : (
        <Button size="small" isBusy={preview.isPending} onClick={() => preview.mutate()}>
          {t.previewPort(port)}
        </Button>
      )}
      <ProblemText error={preview.error} />
    </li>
  )
}
