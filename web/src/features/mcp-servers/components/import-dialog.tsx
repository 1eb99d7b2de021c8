import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ImportDialogFrame } from '@/components/ui/import-dialog-frame'
import { explain } from '@/lib/api/client'
import type { McpImported } from '@/lib/api/types'
import { sentence } from '@/lib/format'
import { importServers, serversQuery } from '../api/mcp-api'
import styles from './import-dialog.module.css'

const words: Record<McpImported['outcome'], string> = {
  created: 'added',
  replaced: 'replaced',
  unchanged: 'unchanged',
  refused: 'not imported',
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
      title="Import MCP servers"
      choose="Choose a .mcp.json"
      fileLabel="File with MCP servers"
      text={text}
      rows={6}
      placeholder='{"mcpServers": {"files": {"command": "npx", "args": ["…"]}}}'
      hint="It can start programs on this machine: import only what you trust."
      problem={take.error && explain(take.error)}
      onText={setText}
      onFile={(file) => void file.text().then(setText)}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{outcomes ? 'Done' : 'Cancel'}</Button>
          <Button look="primary" isBusy={take.isPending} disabled={text.trim() === ''} onClick={() => take.mutate()}>
            Import
          </Button>
        </>
      }
    >
      <label className={styles.check}>
        <input type="checkbox" checked={isReplacing} onChange={(event) => setIsReplacing(event.target.checked)} />
        Replace servers of the same name
      </label>
      {outcomes && (
        <ul className={styles.outcomes} aria-label="Results">
          {outcomes.map((one) => (
            <li key={one.name}>
              <strong>{one.name}</strong> {words[one.outcome]}
              {one.problem && <p className={styles.problem}>{one.problem.code === 'conflict' ? 'A server of this name exists. Choose to replace it above, or rename one.' : sentence(one.problem.message)}</p>}
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
    throw new Error('Not valid JSON.')
  }
}
