import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ImportDialogFrame } from '@/components/ui/import-dialog-frame'
import { explain } from '@/lib/api/client'
import type { McpImported } from '@/lib/api/types'
import { sentence } from '@/lib/format'
import { importServers, serversQuery } from '../api/mcp-api'
import { t } from '../texts'
import styles from './import-dialog.module.css'

const words: Record<McpImported['outcome'], string> = {
  created: 'added',
  replaced: 'replaced',
  unchanged: 'unchanged',
  get refused() { return t.notImported },
}

/** Takes over what Claude Code and others keep in `.mcp.json`. */
export function ImportDialog({ onClose }: { onClose: () => void }): ReactNode {
  const [text, setText] = useState('')
  const [isReplacing, setIsReplacing] = useState(false)
  const queries = useQueryClient()

  const take = useMutation({
    mutationFn: async () => importServers(parsed(text), isReplacing),
    onSuccess: () => queries.invalidateQueries(serversQuery),
  })
  const outcomes = take.data

  return (
    <ImportDialogFrame
      title={t.importMcpServers}
      choose={t.chooseAMcpJson}
      fileLabel={t.fileWithMcpServers}
      text={text}
      rows={6}
      placeholder='{"mcpServers": {"files": {"command": "npx", "args": ["…"]}}}'
      hint={t.itCanStartProgramsOnThisMachine}
      problem={take.error && explain(take.error)}
      onText={setText}
      onFile={(file) => void file.text().then(setText)}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{outcomes ? t.done : t.cancel}</Button>
          <Button look="primary" isBusy={take.isPending} disabled={text.trim() === ''} onClick={() => take.mutate()}>
            {t.import}
          </Button>
        </>
      }
    >
      <label className={styles.check}>
        <input type="checkbox" checked={isReplacing} onChange={(event) => setIsReplacing(event.target.checked)} />
        {t.replaceServersOfTheSameName}
      </label>
      {outcomes && (
        <ul className={styles.outcomes} aria-label={t.results}>
          {outcomes.map((one) => (
            <li key={one.name}>
              <strong>{one.name}</strong> {words[one.outcome]}
              {one.problem && <p className={styles.problem}>{one.problem.code === 'conflict' ? t.aServerOfThisNameExistsChoose : sentence(one.problem.message)}</p>}
            </li>
          ))}
        </ul>
      )}
    </ImportDialogFrame>
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(t.notValidJson)
  }
}
