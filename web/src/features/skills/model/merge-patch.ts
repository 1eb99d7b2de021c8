export type JsonObject = Record<string, unknown>

/** The merge patch (RFC 7396) from `before` to `after`. Null deletes a field, so it is sent only for existing fields. */
export function mergePatch(before: JsonObject, after: JsonObject): JsonObject {
  const patch: JsonObject = {}
  for (const key of Object.keys(before)) {
    if (!(key in after) && before[key] !== null) patch[key] = null
  }
  for (const [key, value] of Object.entries(after)) {
    const old = before[key] ?? null
    if (isSame(old, value ?? null)) continue
    patch[key] = isObject(old) && isObject(value) ? mergePatch(old, value) : value
  }
  return patch
}

export function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true
  if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((item, index) => isSame(item, other[index]))
  if (!isObject(one) || !isObject(other)) return false
  const keys = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...keys].every((key) => isSame(one[key], other[key]))
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
