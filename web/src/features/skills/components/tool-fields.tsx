import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import type { Finding } from '@/lib/api/types'
import type { Draft } from '../model/draft'
import { findingsAt } from '../model/findings'
import { AreaField } from './found'
import { t } from '../texts'
import styles from './skill-form.module.css'

const rules = [
  { key: 'allow', get label() { return t.allowedWithoutAsking }, get hint() { return t.onlyInRunsThatCallTheSkill } },
  { key: 'ask', get label() { return t.askFirst }, get hint() { return t.inEveryRunThatHasTheSkill } },
  { key: 'deny', get label() { return t.neverTitle }, get hint() { return t.inEveryRunThatHasTheSkill } },
] as const

interface ToolFieldsProps {
  draft: Draft
  findings: readonly Finding[]
  onChange: (changes: Partial<Draft>) => void
}

export function ToolFields({ draft, findings, onChange }: ToolFieldsProps): ReactNode {
  return (
    <Section title={t.tools} lead={t.oneRulePerLineAsInAn}>
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
