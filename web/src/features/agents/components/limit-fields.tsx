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
  { name: 'turns', label: 'Model calls', hint: 'How often it may ask its model in one answer.' },
  { name: 'wall_seconds', label: 'Seconds for a whole answer', hint: 'From start to end, waiting for you included.', say: seconds },
  { name: 'first_byte_seconds', label: 'Seconds to the first sign', hint: 'From being asked until anything comes.', say: seconds },
  { name: 'idle_seconds', label: 'Seconds without progress', hint: 'Once there was some.', say: seconds },
  { name: 'tool_seconds', label: 'Seconds without progress in a tool', hint: 'Programs may take longer than words.', say: seconds },
  { name: 'approval_seconds', label: 'Seconds a question waits for you', hint: 'Then the tool is refused.', say: seconds },
  { name: 'output_bytes', label: 'Bytes of output', hint: 'Text, thinking, and what tools get and print.', say: bytes },
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
      <p className={styles.explain}>An answer that reaches a limit is stopped and says which. What you leave empty is as the server has it.</p>
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
                  placeholder="as the server has it"
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
