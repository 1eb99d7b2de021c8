import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { NameList } from '@/components/ui/name-list'
import { FormField } from '@/components/ui/form-field'
import type { Draft, PolicyList } from '../model/draft'
import { sentenceFor, verdictOf } from '../model/tool-policy'
import styles from './agent-form.module.css'

interface ToolRulesProps {
  tools: Draft['tools']
  problem: string | null
  onChange: (tools: Draft['tools']) => void
}

const nothing = { allow: [], ask: [], deny: [] }

/** Which tools are used at once, which ask first and which never are. */
export function ToolRules({ tools, problem, onChange }: ToolRulesProps): ReactNode {
  const [tool, setTool] = useState('')
  const set = (list: PolicyList) => (patterns: readonly string[]) => onChange({ ...tools, [list]: patterns })
  const tried = tool.trim()
  return (
    <>
      <p className={styles.explain}>
        Rules are tool names; <code>*</code> matches anything. “Never” beats “Ask first”, which beats “Always allow”. What no
        pattern names asks first.
      </p>
      <div className={styles.presets}>
        <Button size="small" onClick={() => onChange(nothing)}>
          Always ask
        </Button>
        <Button size="small" onClick={() => onChange({ ...nothing, allow: ['Read', 'Grep', 'Glob', 'LS'] })}>
          Allow reading
        </Button>
        <Button size="small" onClick={() => onChange({ ...nothing, allow: ['*'] })}>
          Allow everything
        </Button>
      </div>
      <NameList label="Always allow" placeholder="such as Read or mcp__git__*" names={tools.allow} onChange={set('allow')} />
      <NameList label="Ask first" placeholder="such as Bash" names={tools.ask} onChange={set('ask')} />
      <NameList label="Never" placeholder="such as WebFetch" names={tools.deny} onChange={set('deny')} />
      {problem && (
        <p className={styles.problem} role="alert">
          {problem}
        </p>
      )}
      <FormField label="Tool name" hint={tried === '' ? 'Test a tool name against these rules' : <output>{sentenceFor(tried, verdictOf(tools, tried))}</output>}>
        {(control) => (
          <input {...control} value={tool} autoComplete="off" autoCapitalize="off" spellCheck={false} placeholder="such as Bash" onChange={(event) => setTool(event.target.value)} />
        )}
      </FormField>
    </>
  )
}
