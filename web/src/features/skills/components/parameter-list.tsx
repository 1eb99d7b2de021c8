import { Plus } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Section } from '@/components/ui/section'
import type { Finding } from '@/lib/api/types'
import { type ParameterDraft, newParameter } from '../model/draft'
import { findingsAt, findingsOfList } from '../model/findings'
import { Findings } from './found'
import { ParameterRow } from './parameter-row'
import { t } from '../texts'
import styles from './parameter-row.module.css'

interface ParameterListProps {
  parameters: readonly ParameterDraft[]
  findings: readonly Finding[]
  onChange: (parameters: ParameterDraft[]) => void
}

export function ParameterList({ parameters, findings, onChange }: ParameterListProps): ReactNode {
  return (
    <Section
      title={t.parameters}
      lead={t.valuesThatChangePerCallAValue}
      action={
        <Button size="small" onClick={() => onChange([...parameters, newParameter()])}>
          <Plus size={14} aria-hidden />
          {t.addAParameter}
        </Button>
      }
    >
      <Findings findings={findingsOfList(findings, '/parameters', parameters.length)} />
      {parameters.length > 0 && (
        <ul className={styles.list}>
          {parameters.map((parameter, index) => (
            <ParameterRow
              key={parameter.key}
              parameter={parameter}
              pointer={`/parameters/${index}`}
              findings={findingsAt(findings, `/parameters/${index}`)}
              onChange={(changed) => onChange(parameters.with(index, changed))}
              onRemove={() => onChange(parameters.toSpliced(index, 1))}
            />
          ))}
        </ul>
      )}
    </Section>
  )
}
