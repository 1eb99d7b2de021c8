import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import type { Skill, SkillParameter } from '../model/skill'
import { type Values, missingIn, startOf } from '../model/skill-command'
import { t } from '../texts'
import styles from './skill-form.module.css'

interface SkillFormProps {
  skill: Skill
  onDone: (values: Values) => void
  onCancel: () => void
}

/** What a skill wants to know, before it is called. It becomes the beginning of the message, where it can be seen. */
export function SkillForm({ skill, onDone, onCancel }: SkillFormProps): ReactNode {
  const [values, setValues] = useState<Values>(() => startOf(skill.parameters))
  const missing = missingIn(skill.parameters, values)
  const group = useRef<HTMLDivElement>(null)

  useEffect(() => {
    group.current?.querySelector<HTMLElement>('input, select')?.focus()
  }, [])

  return (
    // It stands inside the form of the message, so it cannot be a form itself: Enter and Escape are its own.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <div
      ref={group}
      className={styles.form}
      role="group"
      aria-label={t.parametersOf(skill.name)}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onCancel()
        else if (event.key === 'Enter' && !(event.target instanceof HTMLButtonElement) && missing.length === 0) onDone(values)
        else return
        event.preventDefault()
        event.stopPropagation()
      }}
    >
      <p className={styles.title}>
        <strong>/{skill.name}</strong> <span>{skill.description}</span>
      </p>
      {skill.parameters.map((parameter) => (
        <Parameter
          key={parameter.name}
          parameter={parameter}
          value={values[parameter.name] ?? ''}
          onChange={(value) => setValues({ ...values, [parameter.name]: value })}
        />
      ))}
      <div className={styles.actions}>
        {missing.length > 0 && <span className={styles.missing}>{t.required(missing.join(', '))}</span>}
        <Button size="small" look="quiet" onClick={onCancel}>
          {t.editAsText}
        </Button>
        <Button size="small" look="primary" disabled={missing.length > 0} onClick={() => onDone(values)}>
          {t.insert}
        </Button>
      </div>
    </div>
  )
}

interface ParameterProps {
  parameter: SkillParameter
  value: string
  onChange: (value: string) => void
}

function Parameter({ parameter, value, onChange }: ParameterProps): ReactNode {
  const id = useId()
  const { name, type, description, required } = parameter
  const choices = type === 'boolean' ? ['true', 'false'] : type === 'choice' ? (parameter.choices ?? []) : null
  const shared = { id, value, required, 'aria-describedby': description ? `${id}-hint` : undefined }
  return (
    <div className={styles.parameter}>
      <label htmlFor={id}>
        {name}
        {required && <span className={styles.required}> {t.requiredWord}</span>}
      </label>
      {choices ? (
        <select {...shared} onChange={(event) => onChange(event.target.value)}>
          <option value="">{required ? t.choose : t.none}</option>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      ) : (
        <input {...shared} type={type === 'number' ? 'number' : 'text'} step="any" autoComplete="off" onChange={(event) => onChange(event.target.value)} />
      )}
      {description && (
        <p id={`${id}-hint`} className={styles.hint}>
          {description}
        </p>
      )}
    </div>
  )
}
