import { t } from '../texts'

/** One argument of a tool, from its JSON Schema. */
export interface ArgumentField {
  name: string
  kind: 'text' | 'number' | 'boolean' | 'choice' | 'json'
  choices: readonly string[]
  isRequired: boolean
  description: string | null
  initial: string
}

/** The form fields for a tool; null if its schema is not specific enough, so that JSON is entered instead. */
export function fieldsOf(schema: unknown): ArgumentField[] | null {
  if (!isObject(schema) || !isObject(schema.properties)) return isObject(schema) && schema.type === 'object' ? [] : null
  const required = Array.isArray(schema.required) ? schema.required : []
  return Object.entries(schema.properties).map(([name, property]) => fieldOf(name, property, required.includes(name)))
}

function fieldOf(name: string, property: unknown, isRequired: boolean): ArgumentField {
  const { type, enum: options, description, default: initial } = isObject(property) ? property : {}
  const choices = Array.isArray(options) && options.every((option) => typeof option === 'string') ? (options as string[]) : []
  const kind = choices.length > 0 ? 'choice' : type === 'string' ? 'text' : type === 'number' || type === 'integer' ? 'number' : type === 'boolean' ? 'boolean' : 'json'
  return {
    name,
    kind,
    choices,
    isRequired,
    description: typeof description === 'string' ? description : null,
    initial: initial === undefined ? '' : typeof initial === 'string' && kind !== 'json' ? initial : JSON.stringify(initial),
  }
}

export type Arguments = { values: Record<string, unknown> } | { problems: Record<string, string> }

/** What was typed, as the tool wants it. Empty and not required means left out. */
export function argumentsOf(fields: readonly ArgumentField[], typed: Readonly<Record<string, string>>): Arguments {
  const values: Record<string, unknown> = {}
  const problems: Record<string, string> = {}
  for (const field of fields) {
    const text = typed[field.name] ?? field.initial
    if (text === '' && !(field.isRequired && field.kind === 'text')) {
      if (field.isRequired) problems[field.name] = t.required
      continue
    }
    const value = valueOf(field, text)
    if (value === undefined) problems[field.name] = field.kind === 'number' ? t.mustBeANumber : t.notValidJson
    else values[field.name] = value
  }
  return Object.keys(problems).length > 0 ? { problems } : { values }
}

function valueOf({ kind }: ArgumentField, text: string): unknown {
  switch (kind) {
    case 'text':
    case 'choice':
      return text
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined
    case 'boolean':
      return text === 'true'
    case 'json':
      return parsed(text)
  }
}

/** The whole of the arguments, typed as JSON. */
export function argumentsFromJson(text: string): Arguments {
  const value = text.trim() === '' ? {} : parsed(text)
  return isObject(value) ? { values: value } : { problems: { '': t.argumentsAreAJsonObjectSuchAs } }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
