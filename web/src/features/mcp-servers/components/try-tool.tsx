import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Play } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { type ControlProps, FormField } from '@/components/ui/form-field'
import { explain } from '@/lib/api/client'
import type { McpTool } from '@/lib/api/types'
import { callTool, serverQuery } from '../api/mcp-api'
import { type ArgumentField, argumentsFromJson, argumentsOf, fieldsOf } from '../model/arguments-form'
import styles from './mcp-server-page.module.css'
import { ToolResult } from './tool-result'
import { t } from '../texts'

/** A form made from the tool's schema; it really calls the tool. */
export function TryTool({ server, tool }: { server: string; tool: McpTool }): ReactNode {
  const queries = useQueryClient()
  const fields = fieldsOf(tool.input_schema)
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({})
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({})
  const put = (name: string) => (value: string) => setTyped({ ...typed, [name]: value })

  const call = useMutation({
    mutationFn: (values: Record<string, unknown>) => callTool(server, tool.name, values),
    // The server counts its calls, and may have ended in this one.
    onSettled: () => void queries.invalidateQueries({ ...serverQuery(server), exact: true }),
  })

  const submit = (): void => {
    const read = fields ? argumentsOf(fields, typed) : argumentsFromJson(typed[''] ?? '')
    setProblems('problems' in read ? read.problems : {})
    if ('values' in read) call.mutate(read.values)
  }

  return (
    <form
      className={styles.try}
      aria-label={t.try(tool.name)}
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      {fields?.map((field) => (
        <FormField key={field.name} label={field.isRequired ? field.name : t.optional(field.name)} hint={field.description} problem={problems[field.name]}>
          {(control) => <Control field={field} control={control} value={typed[field.name] ?? field.initial} onChange={put(field.name)} />}
        </FormField>
      ))}
      {fields === null && (
        <FormField label={t.argumentsAsJson} problem={problems['']}>
          {(control) => <textarea {...control} rows={4} spellCheck={false} value={typed[''] ?? '{}'} onChange={(event) => put('')(event.target.value)} />}
        </FormField>
      )}
      <div>
        <Button type="submit" isBusy={call.isPending}>
          <Play size={14} aria-hidden />
          {call.isPending ? t.running : t.run}
        </Button>
      </div>
      {call.error && (
        <p className={styles.problem} role="alert">
          {explain(call.error)}
        </p>
      )}
      {call.data && <ToolResult result={call.data} />}
    </form>
  )
}

interface ControlOptions {
  field: ArgumentField
  control: ControlProps
  value: string
  onChange: (value: string) => void
}

function Control({ field, control, value, onChange }: ControlOptions): ReactNode {
  switch (field.kind) {
    case 'boolean':
    case 'choice':
      return (
        <select {...control} value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">{t.empty}</option>
          {(field.kind === 'boolean' ? ['true', 'false'] : field.choices).map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      )
    case 'json':
      return <textarea {...control} rows={3} spellCheck={false} placeholder={t.json} value={value} onChange={(event) => onChange(event.target.value)} />
    default:
      return (
        <input {...control} inputMode={field.kind === 'number' ? 'decimal' : undefined} autoComplete="off" spellCheck={false} value={value} onChange={(event) => onChange(event.target.value)} />
      )
  }
}
