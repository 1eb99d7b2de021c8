/** One question of an agent, with the answers it offers. */
export interface Question {
  /** By this its answer is found again. */
  text: string
  /** A word or two that say what it is about. */
  header: string | null
  options: readonly { label: string; description: string | null }[]
  allowsSeveral: boolean
}

/** The input that asks: our own `ask_user` has one question, Claude Code and Codex send a list. */
export function questionsIn(input: unknown): Question[] {
  const { questions } = record(input)
  const listed = Array.isArray(questions) ? questions.map(questionFrom).filter((question) => question !== null) : []
  if (listed.length > 0) return listed
  return [questionFrom(input) ?? { text: JSON.stringify(input) ?? '', header: null, options: [], allowsSeveral: false }]
}

function questionFrom(value: unknown): Question | null {
  const { question, header, options, multiSelect } = record(value)
  if (typeof question !== 'string') return null
  return { text: question, header: text(header), options: optionsFrom(options), allowsSeveral: multiSelect === true }
}

function optionsFrom(value: unknown): Question['options'] {
  const options = (Array.isArray(value) ? value : []).flatMap((option: unknown) => {
    const label = typeof option === 'string' ? option : text(record(option).label)
    return label ? [{ label, description: text(record(option).description) }] : []
  })
  return options.filter(({ label }, index) => options.findIndex((other) => other.label === label) === index)
}

/** What is sent: one answer for the only question of `ask_user`, else each answer under its question. */
export function answerTo(input: unknown, questions: readonly Question[], answers: readonly string[]): unknown {
  if (!Array.isArray(record(input).questions)) return { answer: answers[0] ?? '' }
  return { answers: Object.fromEntries(questions.map(({ text: question }, index) => [question, answers[index] ?? ''])) }
}

/** The answers that were sent, in one line. */
export function answersIn(sent: unknown): string {
  const { answer, answers } = record(sent)
  if (answer !== undefined) return String(answer)
  return Object.values(record(answers)).map(String).join('; ')
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
