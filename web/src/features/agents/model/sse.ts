export interface SseEvent {
  event: string
  data: string
}

/** Takes server-sent events apart as their bytes come; a frame may be cut anywhere. */
export class SseParser {
  private rest = ''

  push(text: string): SseEvent[] {
    this.rest += text
    const frames = this.rest.split('\n\n')
    this.rest = frames.pop() ?? ''
    return frames.flatMap(frameOf)
  }
}

function frameOf(frame: string): SseEvent[] {
  let event = 'message'
  const data: string[] = []
  for (const line of frame.split('\n')) {
    if (line.startsWith('event:')) event = line.slice(6).trim()
    else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
  }
  return data.length === 0 ? [] : [{ event, data: data.join('\n') }]
}
