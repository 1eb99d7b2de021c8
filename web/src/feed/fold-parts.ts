import type { KnownEvent } from './event'
import type { Part, TextPart, ToolPart } from './state'

/** The parts of an answer after one more event; the same rules, in the same order, as the server's own fold. */
export function foldParts(parts: readonly Part[], event: KnownEvent): readonly Part[] {
  switch (event.type) {
    case 'content_delta':
      return append(parts, 'text', event.data.delta, event.data.item)
    case 'thinking_delta':
      return append(parts, 'thinking', event.data.delta, event.data.item)
    case 'retract': {
      const kept = parts.filter((part) => part.type === 'tool' || part.item !== event.data.item)
      return kept.length === parts.length ? parts : kept
    }
    case 'tool_use': {
      const { tool_use_id, name, input } = event.data
      const call: ToolPart = { type: 'tool', tool_use_id, name, input, output: '', result: null, startedAt: event.created_at }
      return [...parts, call]
    }
    case 'tool_output_delta':
      return changeCall(parts, event.data.tool_use_id, (call) => ({ ...call, output: call.output + event.data.delta }))
    case 'tool_result': {
      const { content, is_error } = event.data
      const endedAt = event.created_at
      return changeCall(parts, event.data.tool_use_id, (call) => ({ ...call, result: { content, is_error }, endedAt }))
    }
    case 'run_delegated': {
      const { tool_use_id, child } = event.data
      return tool_use_id == null ? parts : changeCall(parts, tool_use_id, (call) => ({ ...call, child }))
    }
    default:
      return parts
  }
}

function append(parts: readonly Part[], type: TextPart['type'], delta: string, item: string | null | undefined): readonly Part[] {
  const last = parts.at(-1)
  if (last?.type === type && (last.item ?? null) === (item ?? null)) {
    return [...parts.slice(0, -1), { ...last, text: last.text + delta }]
  }
  return [...parts, item == null ? { type, text: delta } : { type, text: delta, item }]
}

/** A provider may use an id again; the newest call with it is meant. */
function changeCall(parts: readonly Part[], id: string, change: (call: ToolPart) => ToolPart): readonly Part[] {
  const index = parts.findLastIndex((part) => part.type === 'tool' && part.tool_use_id === id)
  const call = parts[index]
  return call?.type === 'tool' ? parts.with(index, change(call)) : parts
}
