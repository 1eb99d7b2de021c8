/** How a tool's input is best shown to someone who has to decide about it. Nothing of it is ever left out. */
export type ToolView =
  | { kind: 'edits'; path: string; edits: readonly { before: string; after: string }[] }
  | { kind: 'command'; command: string; rest: Record<string, unknown> }
  | { kind: 'json' }

export function viewOf(input: unknown): ToolView {
  if (!isRecord(input)) return { kind: 'json' }
  return editsIn(input) ?? commandIn(input) ?? { kind: 'json' }
}

function editsIn(input: Record<string, unknown>): ToolView | null {
  const path = text(input.file_path) ?? text(input.path) ?? text(input.filePath)
  if (path === null) return null
  const single = editFrom(input)
  if (single && hasOnly(input, [...pathKeys, ...editKeys])) return { kind: 'edits', path, edits: [single] }
  if (Array.isArray(input.edits) && hasOnly(input, [...pathKeys, 'edits'])) {
    const edits = input.edits.map((edit) => (isRecord(edit) && hasOnly(edit, editKeys) ? editFrom(edit) : null))
    if (edits.every((edit) => edit !== null)) return { kind: 'edits', path, edits }
  }
  const content = text(input.content)
  if (content !== null && hasOnly(input, [...pathKeys, 'content'])) return { kind: 'edits', path, edits: [{ before: '', after: content }] }
  return null
}

const pathKeys = ['file_path', 'path', 'filePath']
const editKeys = ['old_string', 'new_string', 'oldString', 'newString', 'replace_all']

function editFrom(input: Record<string, unknown>): { before: string; after: string } | null {
  const before = text(input.old_string) ?? text(input.oldString)
  const after = text(input.new_string) ?? text(input.newString)
  // `replace_all: true` changes more than what is shown, so it is shown as it is.
  if (before === null || after === null || input.replace_all === true) return null
  return { before, after }
}

function commandIn(input: Record<string, unknown>): ToolView | null {
  const { command, cmd, ...others } = input
  // A list of words is left as it is: joined, one could not see where each of them ends.
  const line = text(command ?? cmd)
  if (line === null || (command !== undefined && cmd !== undefined)) return null
  return { kind: 'command', command: line, rest: others }
}

/** Of several, the one by which a call is recognised. */
const tellingKeys = ['command', 'cmd', 'file_path', 'pattern', 'query', 'url', 'path']

/** A word or two of the input for the one line that a closed card has. */
export function briefOf(input: unknown): string {
  if (typeof input === 'string') return oneLine(input)
  if (!isRecord(input)) return input === null || input === undefined ? '' : oneLine(JSON.stringify(input))
  const says = (value: unknown): boolean => typeof value === 'string' && value !== ''
  const telling = tellingKeys.find((key) => says(input[key]))
  const first = telling === undefined ? Object.values(input).find(says) : input[telling]
  if (typeof first === 'string') return oneLine(first)
  return Object.keys(input).length === 0 ? '' : oneLine(JSON.stringify(input))
}

/** What a tool gave back, as text. */
export function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  if (Array.isArray(content) && content.length > 0) {
    const texts = content.map((block) => (isRecord(block) && block.type === 'text' ? text(block.text) : null))
    if (texts.every((one) => one !== null)) return texts.join('\n')
  }
  return JSON.stringify(content, null, 2) ?? ''
}

function oneLine(value: string): string {
  // Only plain gaps: other spaces are shown for what they are.
  return value.replace(/[ \t\r\n]+/g, ' ').trim().slice(0, 160)
}

function hasOnly(input: Record<string, unknown>, keys: readonly string[]): boolean {
  return Object.keys(input).every((key) => keys.includes(key))
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
