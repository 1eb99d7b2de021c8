import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import type { Finding } from '@/lib/api/types'
import type { Draft } from '../model/draft'
import { findingsAt } from '../model/findings'
import { AreaField } from './found'
import styles from './skill-form.module.css'

const rules = [
  { key: 'allow', label: 'Allowed without asking', hint: 'Only in runs that call the skill by its name.' },
  { key: 'ask', label: 'Ask first', hint: 'In every run that has the skill.' },
  { key: 'deny', label: 'Never', hint: 'In every run that has the skill.' },
] as const

interface ToolFieldsProps {
  draft: Draft
  findings: readonly Finding[]
  onChange: (changes: Partial<Draft>) => void
}

export function ToolFields({ draft, findings, onChange }: ToolFieldsProps): ReactNode {
  return (
    <Section title="Tools" lead="One rule per line, as in an agent’s settings. The agent’s own rules take precedence.">
      <div className={styles.triple}>
        {rules.map(({ key, label, hint }) => (
          <AreaField
            key={key}
            label={label}
            isCode
            rows={3}
            hint={hint}
            value={draft[key]}
            findings={findingsAt(findings, `/tools/${key}`)}
            onChange={(text) => onChange({ [key]: text })}
          />
        ))}
      </div>
    </Section>
  )
}
