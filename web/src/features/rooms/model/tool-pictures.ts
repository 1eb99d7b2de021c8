/** Types that a browser shows without running anything. */
const safeTypes = /^image\/(png|jpeg|gif|webp)$/

/** What a tool returned, split into pictures and everything else. */
export interface SplitResult {
  /** `data:` addresses. */
  pictures: readonly string[]
  /** The content without the pictures; `null` where nothing else is in it. */
  rest: unknown
}

/** MCP servers send `{type, data, mimeType}`, Anthropic's API `{type, source: {data, media_type}}`. */
export function splitPictures(content: unknown): SplitResult {
  if (!Array.isArray(content)) return { pictures: [], rest: content }
  const pictures: string[] = []
  const rest = content.filter((block: unknown) => {
    const address = addressOf(block)
    if (address !== null) pictures.push(address)
    return address === null
  })
  if (pictures.length === 0) return { pictures, rest: content }
  return { pictures, rest: rest.length > 0 ? rest : null }
}

function addressOf(block: unknown): string | null {
  const { type, data, mimeType, source } = record(block)
  if (type !== 'image') return null
  const bytes = data ?? record(source).data
  const media = mimeType ?? record(block).media_type ?? record(source).media_type
  if (typeof bytes !== 'string' || typeof media !== 'string' || !safeTypes.test(media)) return null
  return /^[A-Za-z0-9+/=\s]+$/.test(bytes) ? `data:${media};base64,${bytes}` : null
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
