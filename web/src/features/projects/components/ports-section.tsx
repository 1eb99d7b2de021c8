import { useMutation, useQuery } from '@tanstack/react-query'
import { ExternalLink } from 'lucide-react'
import { type ReactNode, useState } from 'react'
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
      <div className={styles.port}>
        <code>
          {address}:{port}
        </code>
        {preview.data ? (
          <>
            <a href={preview.data} target="_blank" rel="noopener noreferrer">
              <ExternalLink size={14} aria-hidden />
              {t.openPreviewOf(port)}
            </a>
            <Button size="small" onClick={preview.reset}>
              {t.closePreviewOf(port)}
            </Button>
          </>
        ) : (
          <Button size="small" isBusy={preview.isPending} onClick={() => preview.mutate()}>
            {t.previewPort(port)}
          </Button>
        )}
        <ProblemText error={preview.error} />
      </div>
      {preview.data ? <PreviewFrame address={preview.data} port={port} /> : null}
    </li>
  )
}

/**
 * The page that a program in the sandbox serves, in a frame. It is another origin, so it reaches nothing of this one; the frame's own
 * sandbox keeps it from leading this tab elsewhere.
 */
function PreviewFrame({ address, port }: { address: string; port: number }): ReactNode {
  const [reloads, setReloads] = useState(0)
  return (
    <div className={styles.frame}>
      <Button size="small" onClick={() => setReloads(reloads + 1)}>
        {t.reloadPreviewOf(port)}
      </Button>
      <iframe
        key={reloads}
        src={address}
        title={t.previewOf(port)}
        // Both together are safe for another origin: it cannot reach this document to remove the sandbox.
        // oxlint-disable-next-line react/iframe-missing-sandbox
        sandbox="allow-downloads allow-forms allow-modals allow-popups allow-same-origin allow-scripts"
        referrerPolicy="no-referrer"
      />
    </div>
  )
}
