import type { Skill, SkillParameter } from './skill'

export interface SkillCompletion {
  matches: readonly Skill[]
}

/** A message that begins with `/` and a part of a name, with the caret still in it. */
export function skillsAt(text: string, caret: number, skills: readonly Skill[]): SkillCompletion | null {
  const typed = /^\s*\/([a-z0-9-]*)$/i.exec(text.slice(0, caret))
  if (!typed || /^[a-z0-9-]/i.test(text.slice(caret))) return null
  const word = (typed[1] ?? '').toLowerCase()
  const begins = skills.filter(({ name }) => name.startsWith(word))
  const contains = skills.filter(({ name, display_name }) => !name.startsWith(word) && `${name} ${display_name ?? ''}`.toLowerCase().includes(word))
  const matches = [...begins, ...contains]
  return matches.length === 0 ? null : { matches }
}

export type Values = Readonly<Record<string, string>>

/** What a form begins with: a default is shown, so that it can be seen what will be taken. */
export function startOf(parameters: readonly SkillParameter[]): Values {
  return Object.fromEntries(parameters.map((parameter) => [parameter.name, String(parameter.default ?? '')]))
}

export function missingIn(parameters: readonly SkillParameter[], values: Values): string[] {
  return parameters.filter(({ name, required }) => required && (values[name] ?? '').trim() === '').map(({ name }) => name)
}

/** The start of a message that invokes a skill. Default values are omitted. */
export function commandFor(skill: Skill, values: Values): string {
  const said = skill.parameters.flatMap((parameter) => {
    const value = (values[parameter.name] ?? '').trim()
    return value === '' || value === String(parameter.default ?? '') ? [] : [`${parameter.name}=${quoted(value)}`]
  })
  return `/${[skill.name, ...said].join(' ')} `
}

function quoted(value: string): string {
  if (/^[^\s"'\\]+$/.test(value)) return value
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
