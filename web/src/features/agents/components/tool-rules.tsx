import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { NameList } from '@/components/ui/name-list'
import { FormField } from '@/components/ui/form-field'
import type { Draft, PolicyList } from '../model/draft'
import { sentenceFor, verdictOf } from '../model/tool-policy'
import { WithCode } from '@/components/ui/with-code'
import { t } from '../texts'
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
      <p className={styles.explain}><WithCode text={t.rulesAreToolNamesMatchesAnythingNever} /></p>
      <div className={styles.presets}>
        <Button size="small" onClick={() => onChange(nothing)}>
          {t.alwaysAsk}
        </Button>
        <Button size="small" onClick={() => onChange({ ...nothing, allow: ['Read', 'Grep', 'Glob', 'LS'] })}>
          {t.allowReading}
        </Button>
        <Button size="small" onClick={() => onChange({ ...nothing, allow: ['*'] })}>
          {t.allowEverything}
        </Button>
      </div>
      <NameList label={t.alwaysAllow} placeholder={t.suchAsReadOrMcpGit} names={tools.allow} onChange={set('allow')} />
      <NameList label={t.askFirst} placeholder={t.suchAsBash} names={tools.ask} onChange={set('ask')} />
      <NameList label={t.never} placeholder={t.suchAsWebFetch} names={tools.deny} onChange={set('deny')} />
      {problem && (
        <p className={styles.problem} role="alert">
          {problem}
        </p>
      )}
      <FormField label={t.toolName} hint={tried === '' ? t.testAToolNameAgainstTheseRules : <output>{sentenceFor(tried, verdictOf(tools, tried))}</output>}>
        {(control) => (
          <input {...control} value={tool} autoComplete="off" autoCapitalize="off" spellCheck={false} placeholder={t.suchAsBash} onChange={(event) => setTool(event.target.value)} />
        )}
      </FormField>
    </>
  )
}
