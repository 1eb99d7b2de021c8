/** One block of a tool's answer. The OpenAPI document says of it only that it is an object. */
export type McpContent =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; media_type: string }
  | { type: 'resource'; uri: string; media_type?: string | null; text?: string | null; blob?: string | null }
  | { type: 'resource_link'; uri: string; name?: string | null; description?: string | null }
  | { type: 'other'; value: unknown }
