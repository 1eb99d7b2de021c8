import type { ReactNode } from 'react'
import { FormField } from '@/components/ui/form-field'
import { bytes, duration } from '@/lib/format'
import type { Draft, LimitName } from '../model/draft'
import type { FormProblem } from '../model/problems'
import { t } from '../texts'
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
  { name: 'turns', get label() { return t.modelCalls }, get hint() { return t.modelCallsInOneAnswer } },
  { name: 'wall_seconds', get label() { return t.totalTimeLimitS }, get hint() { return t.fromStartToEndIncludingTheTime }, say: seconds },
  { name: 'first_byte_seconds', get label() { return t.firstResponseTimeoutS }, get hint() { return t.untilTheProviderSendsAnything }, say: seconds },
  { name: 'idle_seconds', get label() { return t.idleTimeoutS }, get hint() { return t.withoutProgressAfterTheFirstResponse }, say: seconds },
  { name: 'tool_seconds', get label() { return t.toolIdleTimeoutS }, get hint() { return t.withoutProgressWhileAToolRuns }, say: seconds },
  { name: 'approval_seconds', get label() { return t.approvalTimeoutS }, get hint() { return t.thenTheToolCallIsDenied }, say: seconds },
  { name: 'output_bytes', get label() { return t.outputLimitBytes }, get hint() { return t.textThinkingAndTheInputAndOutput }, say: bytes },
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
      <p className={styles.explain}>{t.anAnswerThatReachesALimitIs}</p>
      <div className={styles.limits}>
        {limits.map(({ name, label, hint, say }) => {
          const value = Number(values[name])
          const said = say && values[name] !== '' && value > 0 ? t.is(values[name], say(value)) : ''
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
                  placeholder={t.default}
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
