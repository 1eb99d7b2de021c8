import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { FormField } from '@/components/ui/form-field'
import { type OptionName, type OptionsDraft, noOptions } from '../model/model-options'
import type { FormProblem } from '../model/problems'
import styles from './agent-form.module.css'

interface Field {
  name: OptionName
  label: string
  hint: string
  /** Without any it is a number. */
  choices?: readonly (readonly [value: string, label: string])[]
}

const fields: readonly Field[] = [
  {
    name: 'thinking',
    label: 'Thinking',
    hint: 'How much it thinks before it answers, where the model can.',
    choices: [['', 'as the model has it'], ['off', 'off'], ['low', 'a little'], ['medium', 'some'], ['high', 'a lot']],
  },
  { name: 'thinking_budget_tokens', label: 'Tokens for thinking', hint: 'For those models of Anthropic’s that want a fixed number.' },
  { name: 'max_output_tokens', label: 'Tokens of one answer', hint: 'At most; left empty, the provider’s own.' },
  { name: 'context_window', label: 'Tokens that its context holds', hint: 'What does not fit is folded into a summary. Left empty, it is guessed.' },
  {
    name: 'tool_calling',
    label: 'How it calls tools',
    hint: 'In the text is for models that know no tools.',
    choices: [['', 'as its API has it'], ['xml', 'in the text, as XML']],
  },
  {
    name: 'run_tools',
    label: 'When tools run',
    hint: 'At once is faster; an answer that breaks off has then done some of its work.',
    choices: [['', 'after the answer'], ['while_streaming', 'at once, while it still answers']],
  },
  {
    name: 'parallel',
    label: 'Several tools of one answer',
    hint: 'One after another for tools that get into each other’s way.',
    choices: [['', 'side by side'], ['false', 'one after another']],
  },
]

interface ModelOptionFieldsProps {
  values: OptionsDraft
  /** What the provider is called, where it has no use for them and they have to go. */
  uselessTo: string | null
  problem: FormProblem | null
  onChange: (values: OptionsDraft) => void
}

/** How a model's API is asked, for agents whose loop is the server's own. */
export function ModelOptionFields({ values, uselessTo, problem, onChange }: ModelOptionFieldsProps): ReactNode {
  const isShown = fields.some(({ name }) => name === problem?.part)
  return (
    <>
      {uselessTo !== null ? (
        <div className={styles.presets}>
          <p className={styles.explain}>{uselessTo} has settings of its own for models and does not take these.</p>
          <Button size="small" onClick={() => onChange(noOptions)}>
            Clear them
          </Button>
        </div>
      ) : (
        <div className={styles.limits}>
          {fields.map(({ name, label, hint, choices }) => (
            <FormField key={name} label={label} hint={hint} problem={problem?.part === name ? problem.text : null}>
              {(control) => {
                const shared = { ...control, value: values[name], onChange: (event: { target: { value: string } }) => onChange({ ...values, [name]: event.target.value }) }
                if (!choices) return <input {...shared} type="number" inputMode="numeric" min={1} step={1} placeholder="as the server has it" />
                return (
                  <select {...shared}>
                    {choices.map(([value, said]) => (
                      <option key={value} value={value}>
                        {said}
                      </option>
                    ))}
                  </select>
                )
              }}
            </FormField>
          ))}
        </div>
      )}
      {problem && !isShown && (
        <p className={styles.problem} role="alert">
          {problem.text}
        </p>
      )}
    </>
  )
}
