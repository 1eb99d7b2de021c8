import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { FormField } from '@/components/ui/form-field'
import { type OptionName, type OptionsDraft, noOptions } from '../model/model-options'
import type { FormProblem } from '../model/problems'
import { t } from '../texts'
import styles from './agent-form.module.css'

interface Field {
  name: OptionName
  label: string
  hint: string
  /** Without any it is a whole number, or what `kind` says. */
  choices?: readonly (readonly [value: string, label: string])[]
  kind?: 'decimal' | 'lines'
}

const fields = (): readonly Field[] => [
  {
    name: 'thinking',
    label: t.thinking,
    hint: t.reasoningBeforeTheAnswerIfTheModel,
    choices: [['', t.default], ['off', t.off], ['low', t.low], ['medium', t.medium], ['high', t.high]],
  },
  { name: 'thinking_budget_tokens', label: t.thinkingTokens, hint: t.aFixedNumberForAnthropicModelsThat },
  { name: 'max_output_tokens', label: t.maxOutputTokens, hint: t.defaultTheProviders },
  { name: 'temperature', label: t.temperature, hint: t.temperatureHint, kind: 'decimal' },
  { name: 'top_p', label: t.topP, hint: t.topPHint, kind: 'decimal' },
  { name: 'stop', label: t.stopSequences, hint: t.stopSequencesHint, kind: 'lines' },
  { name: 'context_window', label: t.contextWindowTokens, hint: t.olderMessagesAreSummarizedWhenItIs },
  {
    name: 'tool_calling',
    label: t.toolCalls,
    hint: t.xmlIsForModelsWithoutToolSupport,
    choices: [['', t.throughTheApi], ['xml', t.asXmlInTheText]],
  },
  {
    name: 'run_tools',
    label: t.runTools,
    hint: t.runningAtOnceIsFasterButAn,
    choices: [['', t.afterTheAnswer], ['while_streaming', t.whileItIsStillAnswering]],
  },
  {
    name: 'parallel',
    label: t.severalToolCalls,
    hint: t.chooseOneAfterAnotherForToolsThat,
    choices: [['', t.inParallel], ['false', t.oneAfterAnother]],
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
  const isShown = fields().some(({ name }) => name === problem?.part)
  return (
    <>
      {uselessTo !== null ? (
        <div className={styles.presets}>
          <p className={styles.explain}>{t.hasItsOwnModelSettingsAndIgnores(uselessTo)}</p>
          <Button size="small" onClick={() => onChange(noOptions)}>
            {t.clear}
          </Button>
        </div>
      ) : (
        <div className={styles.limits}>
          {fields().map(({ name, label, hint, choices, kind }) => (
            <FormField key={name} label={label} hint={hint} problem={problem?.part === name ? problem.text : null}>
              {(control) => {
                const shared = { ...control, value: values[name], onChange: (event: { target: { value: string } }) => onChange({ ...values, [name]: event.target.value }) }
                if (kind === 'lines') return <textarea {...shared} rows={2} />
                if (kind === 'decimal') return <input {...shared} type="number" inputMode="decimal" min={0} max={2} step="any" placeholder={t.default} />
                if (!choices) return <input {...shared} type="number" inputMode="numeric" min={1} step={1} placeholder={t.default} />
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
