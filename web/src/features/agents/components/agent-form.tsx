import { useQuery } from '@tanstack/react-query'
import { type ReactNode, type RefObject, useId } from 'react'
import { Disclosure } from '@/components/ui/disclosure'
import { FormField } from '@/components/ui/form-field'
import { NameList } from '@/components/ui/name-list'
import { agentsQuery, providersQuery, skillsQuery } from '@/lib/api/queries'
import { bytes } from '@/lib/format'
import { mcpServerNamesQuery } from '../api/agent-queries'
import type { Draft } from '../model/draft'
import { hasOptions, takesOptions } from '../model/model-options'
import type { FormProblem, Place } from '../model/problems'
import { providerTitle } from '@/lib/providers'
import styles from './agent-form.module.css'
import { LimitFields } from './limit-fields'
import { ModelOptionFields } from './model-option-fields'
import { ProviderChoice } from './provider-choice'
import { SkillValues } from './skill-values'
import { ToolRules } from './tool-rules'
import { t } from '../texts'

interface AgentFormProps {
  draft: Draft
  problem: FormProblem | null
  form: RefObject<HTMLFormElement | null>
  isNew: boolean
  onChange: (changes: Partial<Draft>) => void
  onSave: () => void
}

/** The server's limit in bytes; shown only near the limit. */
const longestPrompt = 262_144

export function AgentForm({ draft, problem, form, isNew, onChange, onSave }: AgentFormProps): ReactNode {
  const models = useKnownModels(draft.provider)
  const listId = useId()
  const chosen = useQuery(providersQuery).data?.find(({ name }) => name === draft.provider)
  const capabilities = chosen?.capabilities
  const listed = useQuery(skillsQuery).data
  const skills = listed && [...new Set([...listed.skills, ...listed.folders].map(({ name }) => name))]
  const withParameters = (listed?.skills ?? []).filter(({ name, parameters }) => draft.skills.includes(name) && parameters.length > 0)
  const servers = useQuery(mcpServerNamesQuery).data
  const at = (place: Place): string | null => (problem?.place === place ? problem.text : null)
  const promptBytes = new TextEncoder().encode(draft.systemPrompt).length
  const hasRules = Object.values(draft.tools).some((list) => list.length > 0)
  const hasLimits = Object.values(draft.limits).some((value) => value !== '')
  const options = { areSet: hasOptions(draft.modelOptions), areTaken: chosen === undefined || takesOptions(chosen) }
  const noUse = (what: string): string => t.hasNoUseForTheyAreKept(providerTitle(draft.provider), what)

  return (
    <form
      ref={form}
      className={styles.form}
      aria-label={t.agent}
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        onSave()
      }}
    >
      <FormField label={t.name} problem={at('name')} hint={t.mentionItInRoomsAsName}>
        {(control) => (
          <input {...control} value={draft.name} required maxLength={120} autoComplete="off" onChange={(event) => onChange({ name: event.target.value })} />
        )}
      </FormField>
      <ProviderChoice value={draft.provider} isNew={isNew} problem={at('provider')} onChange={(provider) => onChange({ provider })} />
      <FormField label={t.model} problem={at('model')} hint={chosen && options.areTaken ? t.theAPIsNameForItDefaultThe : t.leftEmptyItIsTheProvidersOwn}>
        {(control) => (
          <>
            <input
              {...control}
              value={draft.model}
              list={listId}
              autoComplete="off"
              autoCapitalize="off"
              spellCheck={false}
              placeholder={chosen && options.areTaken ? '' : t.theProvidersDefault}
              onChange={(event) => onChange({ model: event.target.value })}
            />
            <datalist id={listId}>
              {models.map((model) => (
                <option key={model}>{model}</option>
              ))}
            </datalist>
          </>
        )}
      </FormField>
      <FormField
        label={t.instructions}
        problem={at('system_prompt')}
        hint={promptBytes > longestPrompt / 2 ? t.ofAtMost(bytes(promptBytes), bytes(longestPrompt)) : t.itsRoleAndHowItWorksSent}
      >
        {(control) => <textarea {...control} value={draft.systemPrompt} rows={5} onChange={(event) => onChange({ systemPrompt: event.target.value })} />}
      </FormField>
      {(options.areSet || (chosen && options.areTaken)) && (
        <Disclosure
          title={t.modelOptions}
          summary={!options.areTaken ? t.notForThisProvider : options.areSet ? t.customSettings : t.defaults}
          isOpen={options.areSet || problem?.place === 'model_options'}
        >
          <ModelOptionFields
            values={draft.modelOptions}
            uselessTo={options.areTaken ? null : providerTitle(draft.provider)}
            problem={problem?.place === 'model_options' ? problem : null}
            onChange={(modelOptions) => onChange({ modelOptions })}
          />
        </Disclosure>
      )}
      <Disclosure title={t.tools} summary={hasRules ? t.customRules : t.alwaysAsk} isOpen={hasRules || problem?.place === 'tools'}>
        <ToolRules tools={draft.tools} problem={at('tools')} onChange={(tools) => onChange({ tools })} />
      </Disclosure>
      <Disclosure
        title={t.skillsAndMcpServers}
        summary={named(draft.skills.length + draft.mcpServers.length)}
        isOpen={draft.skills.length + draft.mcpServers.length > 0 || problem?.place === 'skills' || problem?.place === 'skill_parameters' || problem?.place === 'mcp_servers'}
      >
        <NameList
          label={t.skills}
          names={draft.skills}
          known={skills ?? []}
          problem={at('skills')}
          hint={capabilities && !capabilities.skills ? noUse('skills') : offered(skills, 'skills')}
          onChange={(names) => onChange({ skills: names })}
        />
        <SkillValues skills={withParameters} values={draft.skillParameters} problem={at('skill_parameters')} onChange={(skillParameters) => onChange({ skillParameters })} />
        <NameList
          label={t.mcpServers}
          names={draft.mcpServers}
          known={servers ?? []}
          problem={at('mcp_servers')}
          hint={capabilities && !capabilities.mcp ? noUse(t.mcpServers) : offered(servers, t.mcpServers)}
          onChange={(names) => onChange({ mcpServers: names })}
        />
      </Disclosure>
      <Disclosure title={t.limits} summary={hasLimits ? t.customLimits : t.defaults} isOpen={hasLimits || problem?.place === 'limits'}>
        <LimitFields values={draft.limits} problem={problem?.place === 'limits' ? problem : null} onChange={(limits) => onChange({ limits })} />
      </Disclosure>
      {/* Enter in a field saves; the button for it stands in the bar below. */}
      <button type="submit" hidden aria-label={t.save} />
    </form>
  )
}

function named(count: number): string {
  return count === 0 ? t.noneWord : t.named(count)
}

function offered(names: readonly string[] | undefined, what: string): string {
  if (names === undefined) return t.namesOfOnThisServer(what)
  return names.length === 0 ? t.thisServerHasNoYet(what) : t.thisServerHas(names.join(', '))
}

/** Models that other agents of this provider were given. */
function useKnownModels(provider: string): string[] {
  const agents = useQuery(agentsQuery).data ?? []
  return [...new Set(agents.filter((agent) => agent.provider === provider).flatMap(({ model }) => (model ? [model] : [])))]
}
