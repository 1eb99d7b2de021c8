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
    hint: 'Reasoning before the answer, if the model supports it.',
    choices: [['', 'Default'], ['off', 'Off'], ['low', 'Low'], ['medium', 'Medium'], ['high', 'High']],
  },
  { name: 'thinking_budget_tokens', label: 'Thinking tokens', hint: 'A fixed number, for Anthropic models that require one.' },
  { name: 'max_output_tokens', label: 'Max output tokens', hint: 'Default: the provider’s.' },
  { name: 'context_window', label: 'Context window (tokens)', hint: 'Older messages are summarized when it is full. Default: estimated.' },
  {
    name: 'tool_calling',
    label: 'Tool calls',
    hint: 'XML is for models without tool support.',
    choices: [['', 'Through the API'], ['xml', 'As XML in the text']],
  },
  {
    name: 'run_tools',
    label: 'Run tools',
    hint: 'Running at once is faster, but an interrupted answer has already done some work.',
    choices: [['', 'After the answer'], ['while_streaming', 'While it is still answering']],
  },
  {
    name: 'parallel',
    label: 'Several tool calls',
    hint: 'Choose one after another for tools that interfere with each other.',
    choices: [['', 'In parallel'], ['false', 'One after another']],
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
          <p className={styles.explain}>{uselessTo} has its own model settings and ignores these.</p>
          <Button size="small" onClick={() => onChange(noOptions)}>
            Clear
          </Button>
        </div>
      ) : (
        <div className={styles.limits}>
          {fields.map(({ name, label, hint, choices }) => (
            <FormField key={name} label={label} hint={hint} problem={problem?.part === name ? problem.text : null}>
              {(control) => {
                const shared = { ...control, value: values[name], onChange: (event: { target: { value: string } }) => onChange({ ...values, [name]: event.target.value }) }
                if (!choices) return <input {...shared} type="number" inputMode="numeric" min={1} step={1} placeholder="Default" />
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
