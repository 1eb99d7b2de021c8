import { Trash2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import { Select } from '@/components/ui/select'
import type { Finding } from '@/lib/api/types'
import { type ParameterDraft, type ParameterKind, linesOf } from '../model/draft'
import { findingsAt } from '../model/findings'
import { AreaField, Findings, TextField } from './found'
import { t } from '../texts'
import styles from './parameter-row.module.css'

const kinds: { value: ParameterKind; label: string }[] = [
  { value: 'text', get label() { return t.text } },
  { value: 'number', get label() { return t.number } },
  { value: 'choice', get label() { return t.choice } },
  { value: 'boolean', get label() { return t.boolean } },
  { value: 'file_path', get label() { return t.filePath } },
]

interface ParameterRowProps {
  parameter: ParameterDraft
  pointer: string
  findings: readonly Finding[]
  onChange: (parameter: ParameterDraft) => void
  onRemove: () => void
}

export function ParameterRow({ parameter, pointer, findings, onChange, onRemove }: ParameterRowProps): ReactNode {
  const change = (changes: Partial<ParameterDraft>): void => onChange({ ...parameter, ...changes })
  const at = (part: string): Finding[] => findingsAt(findings, `${pointer}/${part}`)
  const placed = new Set(['name', 'description', 'default', 'choices'].flatMap(at))
  const name = parameter.name || t.theParameter
  return (
    <li>
      <fieldset className={styles.row}>
        <legend className="visually-hidden">{t.parameter(parameter.name)}</legend>
        <TextField label={t.name} value={parameter.name} spellCheck={false} maxLength={64} findings={at('name')} onChange={(text) => change({ name: text })} />
        <Select label={t.type} value={parameter.kind} options={kinds} onChange={(kind) => change({ kind: kind as ParameterKind, fallback: '' })} />
        <Fallback parameter={parameter} findings={at('default')} onChange={(fallback) => change({ fallback })} />
        <div className={styles.end}>
          <label className={styles.required}>
            <input type="checkbox" checked={parameter.isRequired} onChange={(event) => change({ isRequired: event.target.checked })} />
            {t.required}
          </label>
          <IconButton label={t.remove(name)} onClick={onRemove}>
            <Trash2 size={15} aria-hidden />
          </IconButton>
        </div>
        <div className={styles.wide}>
          <TextField label={t.whatItIsFor} value={parameter.description} findings={at('description')} onChange={(description) => change({ description })} />
        </div>
        {parameter.kind === 'choice' && (
          <div className={styles.wide}>
            <AreaField label={t.choicesOnePerLine} rows={2} value={parameter.choices} findings={at('choices')} onChange={(choices) => change({ choices })} />
          </div>
        )}
        <div className={styles.wide}>
          <Findings findings={findings.filter((finding) => !placed.has(finding))} />
        </div>
      </fieldset>
    </li>
  )
}

function Fallback({ parameter, findings, onChange }: { parameter: ParameterDraft; findings: readonly Finding[]; onChange: (text: string) => void }): ReactNode {
  const { kind, fallback, choices } = parameter
  if (kind === 'boolean' || kind === 'choice') {
    const values = kind === 'boolean' ? ['true', 'false'] : linesOf(choices)
    // A default that is no longer a choice stays visible until it is changed.
    const shown = fallback !== '' && !values.includes(fallback) ? [...values, fallback] : values
    const words: Record<string, string> = kind === 'boolean' ? { true: t.yes, false: t.no } : {}
    return (
      <div>
        <Select
          label={t.default}
          value={fallback}
          options={[{ value: '', label: t.none }, ...shown.map((value) => ({ value, label: words[value] ?? value }))]}
          onChange={onChange}
        />
        <Findings findings={findings} />
      </div>
    )
  }
  return <TextField label={t.default} inputMode={kind === 'number' ? 'decimal' : undefined} value={fallback} findings={findings} onChange={onChange} />
}
