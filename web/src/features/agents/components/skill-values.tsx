import type { ReactNode } from 'react'
import { FormField } from '@/components/ui/form-field'
import type { components } from '@/lib/api/schema'
import type { SkillValues as Values } from '../model/draft'
import { t } from '../texts'
import styles from './agent-form.module.css'

type Skill = Pick<components['schemas']['SkillSummary'], 'name' | 'parameters'>
type Parameter = components['schemas']['Parameter']

interface SkillValuesProps {
  /** Those of the agent that take parameters. */
  skills: readonly Skill[]
  values: Values
  problem: string | null
  onChange: (values: Values) => void
}

/** The agent's default values for skill parameters. */
export function SkillValues({ skills, values, problem, onChange }: SkillValuesProps): ReactNode {
  const put = (skill: string, name: string, value: unknown): void => {
    const { [name]: _before, ...others } = values[skill] ?? {}
    onChange({ ...values, [skill]: value === undefined ? others : { ...others, [name]: value } })
  }
  return (
    <>
      {skills.map((skill) => (
        <fieldset key={skill.name} className={styles.values}>
          <legend>{t.parametersOf(skill.name)}</legend>
          <div className={styles.limits}>
            {skill.parameters.map((parameter) => (
              <FormField key={parameter.name} label={parameter.required ? t.required(parameter.name) : parameter.name} hint={hintOf(parameter)}>
                {(control) => <Control parameter={parameter} control={control} value={values[skill.name]?.[parameter.name]} onChange={(value) => put(skill.name, parameter.name, value)} />}
              </FormField>
            ))}
          </div>
        </fieldset>
      ))}
      {problem && (
        <p className={styles.problem} role="alert">
          {problem}
        </p>
      )}
    </>
  )
}

interface ControlOptions {
  parameter: Parameter
  control: object
  value: unknown
  onChange: (value: unknown) => void
}

/** An empty value is not sent: the skill's default or the message applies. */
function Control({ parameter, control, value, onChange }: ControlOptions): ReactNode {
  const shared = { ...control, value: String(value ?? ''), onChange: (event: { target: { value: string } }) => onChange(read(parameter, event.target.value)) }
  const choices = parameter.type === 'boolean' ? ['true', 'false'] : parameter.type === 'choice' ? parameter.choices : undefined
  if (!choices) return <input {...shared} type={parameter.type === 'number' ? 'number' : 'text'} step="any" autoComplete="off" spellCheck={false} />
  return (
    <select {...shared}>
      <option value="">{t.none}</option>
      {choices.map((choice) => (
        <option key={choice}>{choice}</option>
      ))}
    </select>
  )
}

function read({ type }: Parameter, text: string): unknown {
  if (text === '') return undefined
  if (type === 'number') return Number(text)
  return type === 'boolean' ? text === 'true' : text
}

function hintOf({ description, default: usual }: Parameter): string | undefined {
  const fallback = usual === null || usual === undefined ? null : t.leftEmpty(String(usual))
  return [description, fallback].filter(Boolean).join(' ') || undefined
}
