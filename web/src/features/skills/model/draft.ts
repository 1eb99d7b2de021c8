import type { Finding, SkillParameter, SkillSpec } from '@/lib/api/types'
import { isObject } from './merge-patch'
import { t } from '../texts'

export type ParameterKind = SkillParameter['type'] & string

/** A parameter while it is typed: everything is text until it is saved. */
export interface ParameterDraft {
  /** Keeps a row the same row while others come and go. */
  key: number
  name: string
  kind: ParameterKind
  description: string
  isRequired: boolean
  fallback: string
  /** One in each line. */
  choices: string
}

/** A skill while it is typed. */
export interface Draft {
  name: string
  displayName: string
  description: string
  body: string
  category: string
  label: string
  license: string
  compatibility: string
  parameters: ParameterDraft[]
  /** JSON, as typed. */
  servers: string
  metadata: string
  /** One rule in each line. */
  allow: string
  ask: string
  deny: string
}

let nextKey = 1

export function newParameter(): ParameterDraft {
  return { key: nextKey++, name: '', kind: 'text', description: '', isRequired: false, fallback: '', choices: '' }
}

export function draftOf(spec: SkillSpec): Draft {
  return {
    name: spec.name,
    displayName: spec.display_name ?? '',
    description: spec.description,
    body: spec.body,
    category: spec.category ?? '',
    label: spec.label ?? '',
    license: spec.license ?? '',
    compatibility: spec.compatibility ?? '',
    parameters: (spec.parameters ?? []).map((parameter) => ({
      key: nextKey++,
      name: parameter.name,
      kind: parameter.type ?? 'text',
      description: parameter.description ?? '',
      isRequired: parameter.required ?? false,
      fallback: parameter.default === null || parameter.default === undefined ? '' : String(parameter.default),
      choices: (parameter.choices ?? []).join('\n'),
    })),
    servers: jsonText(spec.mcp_servers),
    metadata: jsonText(spec.metadata),
    allow: (spec.tools?.allow ?? []).join('\n'),
    ask: (spec.tools?.ask ?? []).join('\n'),
    deny: (spec.tools?.deny ?? []).join('\n'),
  }
}

export const emptySpec: SkillSpec = { name: '', description: '', body: '' }

/** The input in the server's format, and errors that the server cannot report. */
export function specOf(draft: Draft): { spec: SkillSpec; findings: Finding[] } {
  const findings: Finding[] = []
  const error = (pointer: string, message: string): void => void findings.push({ level: 'error', pointer, message })
  const spec: SkillSpec = {
    name: draft.name.trim(),
    display_name: orNull(draft.displayName),
    description: draft.description.trim(),
    body: draft.body,
    category: orNull(draft.category),
    label: orNull(draft.label),
    license: orNull(draft.license),
    compatibility: orNull(draft.compatibility),
    metadata: readObject(draft.metadata, (message) => error('/metadata', message)) as Record<string, string>,
    parameters: draft.parameters.map((parameter, index) => parameterOf(parameter, (message) => error(`/parameters/${index}/default`, message))),
    mcp_servers: readServers(draft.servers, (message) => error('/mcp_servers', message)) as SkillSpec['mcp_servers'],
    tools: { allow: linesOf(draft.allow), ask: linesOf(draft.ask), deny: linesOf(draft.deny) },
  }
  return { spec, findings }
}

const namePattern = /^[a-z0-9]+(-[a-z0-9]+)*$/

/** A word of the app's own addresses cannot be a skill's name too. */
const taken = ['new']

/** Validates the name here, because the server reports nothing else for a skill with an invalid name. */
export function nameFinding(name: string): Finding | null {
  const message =
    name === ''
      ? t.aSkillNeedsANameSuchAs
      : !namePattern.test(name) || name.length > 64
        ? t.use164LowercaseLettersDigitsAnd
        : taken.includes(name)
          ? t.isTheAddressOfThisPageChoose(name)
          : null
  return message === null ? null : { level: 'error', pointer: '/name', message }
}

function parameterOf({ name, kind, description, isRequired, fallback, choices }: ParameterDraft, onError: (message: string) => void): SkillParameter {
  const text = fallback.trim()
  const common = { name: name.trim(), type: kind, description: orNull(description), required: isRequired, choices: kind === 'choice' ? linesOf(choices) : [] }
  if (text === '') return { ...common, default: null }
  if (kind === 'number' && !Number.isFinite(Number(text))) onError(t.isNotANumber(text))
  return { ...common, default: kind === 'number' ? Number(text) : kind === 'boolean' ? text === 'true' : fallback }
}

/** As in `.mcp.json`; with or without the key that such a file has around its servers. */
function readServers(text: string, onError: (message: string) => void): object {
  const read = readObject(text, onError)
  const inner = Object.keys(read).length === 1 ? read.mcpServers : undefined
  return isObject(inner) ? inner : read
}

function readObject(text: string, onError: (message: string) => void): Record<string, unknown> {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
    onError(t.itHasToBeAJsonObject)
  } catch (error) {
    onError(t.thisIsNotJson(error instanceof Error ? error.message : String(error)))
  }
  return {}
}

export function linesOf(text: string): string[] {
  return text.split('\n').map((line) => line.trim()).filter(Boolean)
}

function jsonText(value: object | undefined): string {
  return value && Object.keys(value).length > 0 ? JSON.stringify(value, null, 2) : ''
}

function orNull(text: string): string | null {
  return text.trim() === '' ? null : text.trim()
}
