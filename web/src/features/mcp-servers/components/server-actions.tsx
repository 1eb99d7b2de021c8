import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Ellipsis, Power, Stethoscope, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { Menu } from '@/components/ui/menu'
import { explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { McpServer, McpTestReport } from '@/lib/api/types'
import { duration, sentence } from '@/lib/format'
import { notify } from '@/lib/notices'
import { changeServer, deleteServer, testServer } from '../api/mcp-api'
import { t } from '../texts'
import styles from './mcp-server-page.module.css'

/** Test it, switch it off and on, delete it. */
export function ServerActions({ server }: { server: McpServer }): ReactNode {
  const [open, setOpen] = useState<'test' | 'delete' | null>(null)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: queryKeys.mcpServers.all })
  const toggle = useMutation({
    mutationFn: () => changeServer(server.name, { disabled: !server.disabled }),
    onSuccess: refresh,
    onError: (error) => notify(explain(error), 'problem'),
  })
  const remove = useMutation({
    mutationFn: () => deleteServer(server.name),
    onSuccess: async () => {
      await refresh()
      await navigate({ to: '/mcp-servers' })
    },
  })

  return (
    <>
      <Button onClick={() => setOpen('test')}>
        <Stethoscope size={14} aria-hidden />
        {t.test}
      </Button>
      {server.editable && (
        <Menu
          label={t.actionsFor(server.name)}
          icon={<Ellipsis size={18} aria-hidden />}
          items={[
            {
              label: server.disabled ? t.turnOn : t.turnOff,
              icon: <Power size={15} aria-hidden />,
              onSelect: () => toggle.mutate(),
            },
            { label: t.deleteIt, icon: <Trash2 size={15} aria-hidden />, onSelect: () => setOpen('delete'), isDangerous: true },
          ]}
        />
      )}
      {open === 'test' && <TestDialog name={server.name} onClose={() => setOpen(null)} />}
      {open === 'delete' && (
        <ConfirmDialog title={t.delete(server.name)} keep={t.cancel} confirm={t.deleteServer} isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={() => setOpen(null)}>
          <p>{t.agentsUsingItWillFailUntilYou}</p>
        </ConfirmDialog>
      )}
    </>
  )
}

/** Starts a separate instance of the server once and shows the result. */
function TestDialog({ name, onClose }: { name: string; onClose: () => void }): ReactNode {
  const test = useMutation({ mutationFn: () => testServer(name) })
  return (
    <Dialog title={t.testWith(name)} width="wide" onClose={onClose}>
      <div className={dialogs.body}>
        <p className={styles.note}>{t.startsTheServerListsItsToolsAnd}</p>
        {test.isPending && <p role="status">{t.testing}</p>}
        {test.error && (
          <p className={styles.problem} role="alert">
            {explain(test.error)}
          </p>
        )}
        {test.data && <Report report={test.data} />}
        <div className={dialogs.actions}>
          <Button onClick={onClose}>{t.close}</Button>
          <Button look="primary" isBusy={test.isPending} onClick={() => test.mutate()}>
            {test.data || test.error ? t.testAgain : t.startTest}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

function Report({ report: { ok, millis, error, listing, stderr, noise_lines: noise } }: { report: McpTestReport }): ReactNode {
  return (
    <>
      <div className={styles.report} data-ok={ok} role={ok ? 'status' : 'alert'}>
        <strong>{ok ? t.worksToolsIn(listing?.tools.length ?? 0, duration(millis)) : sentence(error?.message ?? t.itFailed)}</strong>
        {noise > 0 && <p>{t.linesOfOutputWerentValidMcpMessages(noise)}</p>}
      </div>
      {stderr !== '' && (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard must reach it
        <pre className={styles.output} role="region" aria-label={t.output} tabIndex={0}>
          {stderr}
        </pre>
      )}
    </>
  )
}
