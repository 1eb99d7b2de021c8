import { CircleAlert, TriangleAlert } from 'lucide-react'
import { type ComponentProps, type ReactNode, useId } from 'react'
import base from '@/components/ui/control.module.css'
import type { Finding } from '@/lib/api/types'
import { t } from '../texts'
import styles from './found.module.css'

/** What was found, each with its weight in words too: colour alone tells nothing. */
export function Findings({ findings, id }: { findings: readonly Finding[]; id?: string }): ReactNode {
  if (findings.length === 0) return null
  return (
    <ul className={styles.findings} id={id}>
      {findings.map(({ level, pointer, message }) => (
        <li key={`${pointer} ${message}`} data-level={level}>
          {level === 'error' ? <CircleAlert size={14} aria-hidden /> : <TriangleAlert size={14} aria-hidden />}
          <span className="visually-hidden">{level === 'error' ? t.error : t.warning}</span>
          {message}
        </li>
      ))}
    </ul>
  )
}

interface FoundProps {
  label: string
  /** For a label that is explained by its neighbors. */
  isLabelHidden?: boolean
  hint?: ReactNode
  findings: readonly Finding[]
}

interface Described {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
  className: string | undefined
}

function Found({ label, isLabelHidden, hint, findings, children }: FoundProps & { children: (described: Described) => ReactNode }): ReactNode {
  const id = useId()
  const described = [hint && `${id}-hint`, findings.length > 0 && `${id}-found`].filter(Boolean).join(' ')
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={isLabelHidden ? 'visually-hidden' : base.label}>
        {label}
      </label>
      {children({
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': findings.some(({ level }) => level === 'error') || undefined,
        className: base.control,
      })}
      {hint && (
        <p id={`${id}-hint`} className={base.hint}>
          {hint}
        </p>
      )}
      <Findings findings={findings} id={`${id}-found`} />
    </div>
  )
}

type TextProps = FoundProps & Omit<ComponentProps<'input'>, 'onChange' | 'id'> & { onChange: (text: string) => void }

export function TextField({ label, isLabelHidden, hint, findings, onChange, ...rest }: TextProps): ReactNode {
  return (
    <Found label={label} isLabelHidden={isLabelHidden} hint={hint} findings={findings}>
      {(described) => <input autoComplete="off" {...rest} {...described} onChange={(event) => onChange(event.target.value)} />}
    </Found>
  )
}

type AreaProps = FoundProps & Omit<ComponentProps<'textarea'>, 'onChange' | 'id'> & { isCode?: boolean; isLarge?: boolean; onChange: (text: string) => void }

export function AreaField({ label, isLabelHidden, hint, findings, isCode = false, isLarge = false, onChange, ...rest }: AreaProps): ReactNode {
  return (
    <Found label={label} isLabelHidden={isLabelHidden} hint={hint} findings={findings}>
      {(described) => (
        <textarea
          {...rest}
          {...described}
          data-code={isCode || undefined}
          data-large={isLarge || undefined}
          spellCheck={isCode ? false : undefined}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Found>
  )
}
