import { useQueryClient } from '@tanstack/react-query'
import { FileJson } from 'lucide-react'
import { type ReactNode, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import { FormField } from '@/components/ui/form-field'
import { explain } from '@/lib/api/client'
import { sentence } from '@/lib/format'
import { importServers, serversQuery } from '../api/mcp-api'
import type { ImportOutcome } from '../model/types'
import styles from './dialog.module.css'

const words: Record<ImportOutcome['outcome'], string> = {
  created: 'added',
  replaced: 'replaced',
  unchanged: 'was there already',
  refused: 'not taken',
}

/** Takes over what Claude Code and others keep in `.mcp.json`. */
export function ImportDialog({ onClose }: { onClose: () => void }): ReactNode {
  const [text, setText] = useState('')
  const [isReplacing, setIsReplacing] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const [outcomes, setOutcomes] = useState<readonly ImportOutcome[] | null>(null)
  const [isBusy, setIsBusy] = useState(false)
  const picker = useRef<HTMLInputElement>(null)
  const queries = useQueryClient()

  const take = async (): Promise<void> => {
    setProblem(null)
    setIsBusy(true)
    try {
      setOutcomes(await importServers(parsed(text), isReplacing))
      await queries.invalidateQueries(serversQuery)
    } catch (error) {
      setProblem(explain(error))
    }
    setIsBusy(false)
  }

  return (
    <Dialog title="Import MCP servers" onClose={onClose}>
      <div className={styles.dialog}>
        <div>
          <Button onClick={() => picker.current?.click()}>
            <FileJson size={15} aria-hidden />
            Choose a .mcp.json
          </Button>
          <input
            ref={picker}
            type="file"
            accept=".json,application/json"
            hidden
            aria-label="File with MCP servers"
            onChange={(event) => {
              void event.target.files?.[0]?.text().then(setText)
              event.target.value = ''
            }}
          />
        </div>
        <FormField label="Or paste it here" problem={problem} hint="It may start programs on this machine: take only what you trust.">
          {(control) => (
            <textarea {...control} rows={6} spellCheck={false} placeholder='{"mcpServers": {"files": {"command": "npx", "args": ["…"]}}}' value={text} onChange={(event) => setText(event.target.value)} />
          )}
        </FormField>
        <label className={styles.check}>
          <input type="checkbox" checked={isReplacing} onChange={(event) => setIsReplacing(event.target.checked)} />
          Replace servers of the same name
        </label>
        {outcomes && (
          <ul className={styles.outcomes} aria-label="What became of each">
            {outcomes.map((one) => (
              <li key={one.name}>
                <strong>{one.name}</strong> {words[one.outcome]}
                {one.problem && <p className={styles.problem}>{one.problem.code === 'conflict' ? 'There is another one of this name. Say above that it is replaced, or rename one of them.' : sentence(one.problem.message)}</p>}
              </li>
            ))}
          </ul>
        )}
        <div className={styles.dialogActions}>
          <Button onClick={onClose}>{outcomes ? 'Done' : 'Cancel'}</Button>
          <Button look="primary" isBusy={isBusy} disabled={text.trim() === ''} onClick={() => void take()}>
            Import
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('This is not JSON.')
  }
}
