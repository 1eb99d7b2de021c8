import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import type { Finding } from '@/lib/api/types'
import type { Draft } from '../model/draft'
import { findingsAt, findingsElsewhere } from '../model/findings'
import { BodyEditor } from './body-editor'
import { Findings, AreaField, TextField } from './found'
import { ParameterList } from './parameter-list'
import styles from './skill-form.module.css'
import { ToolFields } from './tool-fields'
import { WithCode } from '@/components/ui/with-code'
import { t } from '../texts'

interface SkillFormProps {
  draft: Draft
  /** A skill that exists keeps its name. */
  isNew: boolean
  findings: readonly Finding[]
  preview: string | null
  onChange: (draft: Draft) => void
}

const longestDescription = 1024

export function SkillForm({ draft, isNew, findings, preview, onChange }: SkillFormProps): ReactNode {
  const change = (changes: Partial<Draft>): void => onChange({ ...draft, ...changes })
  const at = (pointer: string): Finding[] => findingsAt(findings, pointer)
  return (
    <div className={styles.form}>
      <Findings findings={findingsElsewhere(findings)} />
      <Section title={t.basics}>
        <div className={styles.pair}>
          <TextField
            label={t.name}
            value={draft.name}
            disabled={!isNew}
            maxLength={64}
            spellCheck={false}
            findings={isNew ? at('/name') : []}
            hint={isNew ? <><WithCode text={t.typeItToUseTheSkillCode} /></> : undefined}
            onChange={(name) => change({ name })}
          />
          <TextField label={t.displayName} value={draft.displayName} maxLength={120} findings={at('/display_name')} hint={isNew ? t.forPeopleOptional : undefined} onChange={(displayName) => change({ displayName })} />
        </div>
        <AreaField
          label={t.description}
          value={draft.description}
          rows={3}
          findings={at('/description')}
          hint={t.whatItDoesAndWhenToUse(draft.description.trim().length, longestDescription)}
          onChange={(description) => change({ description })}
        />
        <div className={styles.pair}>
          <TextField label={t.category} value={draft.category} findings={at('/category')} onChange={(category) => change({ category })} />
          <TextField label={t.versionLabel} placeholder="1.2.0" value={draft.label} findings={at('/label')} onChange={(label) => change({ label })} />
        </div>
      </Section>
      <BodyEditor body={draft.body} preview={preview} findings={at('/body')} onChange={(body) => change({ body })} />
      <ParameterList parameters={draft.parameters} findings={at('/parameters')} onChange={(parameters) => change({ parameters })} />
      <ToolFields draft={draft} findings={findings} onChange={change} />
      <Section title={t.mcpServers} lead={<><WithCode text={t.availableInRunsWithThisSkillWrite} /></>}>
        <AreaField
          label={t.serversAsInMcpJson}
          isCode
          rows={4}
          value={draft.servers}
          findings={at('/mcp_servers')}
          placeholder={'{\n  "files": { "command": "files-server", "args": ["docs"] }\n}'}
          onChange={(servers) => change({ servers })}
        />
      </Section>
      <Section title={t.more}>
        <div className={styles.pair}>
          <TextField label={t.licence} value={draft.license} findings={at('/license')} onChange={(license) => change({ license })} />
          <TextField label={t.compatibility} value={draft.compatibility} findings={at('/compatibility')} hint={t.requirementsSuchAsProgramsOrNetworkAccess} onChange={(compatibility) => change({ compatibility })} />
        </div>
        <AreaField label={t.metadataAsJson} isCode rows={2} value={draft.metadata} findings={at('/metadata')} placeholder={'{ "source": "team handbook" }'} onChange={(metadata) => change({ metadata })} />
      </Section>
    </div>
  )
}
