import type { ReactNode } from 'react'
import { FormField } from '@/components/ui/form-field'
import { bytes, duration } from '@/lib/format'
import type { Draft, LimitName } from '../model/draft'
import type { FormProblem } from '../model/problems'
import styles from './agent-form.module.css'

interface Limit {
  name: LimitName
  label: string
  hint: string
  /** A large number in readable form. */
  say?: (value: number) => string
}

const seconds = (value: number): string => duration(value * 1000)

const limits: readonly Limit[] = [
  { name: 'turns', label: 'Model calls', hint: 'Model calls in one answer.' },
  { name: 'wall_seconds', label: 'Total time limit (s)', hint: 'From start to end, including the time it waits for you.', say: seconds },
  { name: 'first_byte_seconds', label: 'First-response timeout (s)', hint: 'Until the provider sends anything.', say: seconds },
  { name: 'idle_seconds', label: 'Idle timeout (s)', hint: 'Without progress after the first response.', say: seconds },
  { name: 'tool_seconds', label: 'Tool idle timeout (s)', hint: 'Without progress while a tool runs.', say: seconds },
  { name: 'approval_seconds', label: 'Approval timeout (s)', hint: 'Then the tool call is denied.', say: seconds },
  { name: 'output_bytes', label: 'Output limit (bytes)', hint: 'Text, thinking, and the input and output of tools.', say: bytes },
]

interface LimitFieldsProps {
  values: Draft['limits']
  problem: FormProblem | null
  onChange: (values: Draft['limits']) => void
}

/** What one answer may take before it is stopped. */
export function LimitFields({ values, problem, onChange }: LimitFieldsProps): ReactNode {
  // Without a pointer from the server, the invalid limit is the one with a bad value.
  const isWrong = (name: LimitName): boolean => {
    if (problem === null || problem.part !== null) return problem?.part === name
    return values[name] !== '' && !(Number(values[name]) >= 1)
  }
  return (
    <>
      <p className={styles.explain}>An answer that reaches a limit is stopped and says which. Empty fields use the server’s limits.</p>
      <div className={styles.limits}>
        {limits.map(({ name, label, hint, say }) => {
          const value = Number(values[name])
          const said = say && values[name] !== '' && value > 0 ? ` ${values[name]} is ${say(value)}.` : ''
          return (
            <FormField key={name} label={label} hint={hint + said} problem={isWrong(name) ? problem?.text : null}>
              {(control) => (
                <input
                  {...control}
                  type="number"
                  inputMode="numeric"
                  min={1}
                  step={1}
                  value={values[name]}
                  placeholder="Default"
                  onChange={(event) => onChange({ ...values, [name]: event.target.value })}
                />
              )}
            </FormField>
          )
        })}
      </div>
      {problem && !limits.some(({ name }) => isWrong(name)) && (
        <p className={styles.problem} role="alert">
          {problem.text}
        </p>
      )}
    </>
  )
}
