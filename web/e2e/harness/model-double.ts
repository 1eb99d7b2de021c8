import { type Server as HttpServer, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Stands in for Anthropic's API: every model call is answered with the same words, in two pieces. */
export class ModelDouble {
  /** What was asked for, with the key that came along. */
  readonly calls: { path: string; key: string | undefined }[] = []
  /** The bodies of model calls. */
  readonly bodies: unknown[] = []

  private constructor(
    private readonly server: HttpServer,
    readonly url: string,
    /** The only key with which it lists its models. */
    readonly key: string,
  ) {}

  static async start(answer: string, key = 'sk-ant-only-for-this-test'): Promise<ModelDouble> {
    const server = createServer((request, response) => {
      const path = (request.url ?? '').split('?')[0] ?? ''
      double.calls.push({ path, key: request.headers['x-api-key']?.toString() })
      let body = ''
      request.setEncoding('utf8').on('data', (text: string) => (body += text)).on('end', () => {
        if (request.method === 'POST' && path === '/v1/messages') {
          double.bodies.push(JSON.parse(body))
          response.writeHead(200, { 'content-type': 'text/event-stream' }).end(stream(answer))
        } else if (path === '/v1/models' && request.headers['x-api-key'] === double.key) {
          response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data: [{ type: 'model', id: 'claude-double-1', display_name: 'Double 1' }], has_more: false }))
        } else if (path === '/v1/models') {
          response.writeHead(401, { 'content-type': 'application/json' }).end('{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}')
        } else if (path.endsWith('/count_tokens')) {
          response.writeHead(200, { 'content-type': 'application/json' }).end('{"input_tokens":10}')
        } else {
          response.writeHead(404, { 'content-type': 'application/json' }).end('{"type":"error","error":{"type":"not_found_error","message":"not here"}}')
        }
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const double = new ModelDouble(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key)
    return double
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }
}

function stream(answer: string): string {
  const half = Math.ceil(answer.length / 2)
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5', content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 1 } }
  const delta = (text: string) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })
  const events = [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    delta(answer.slice(0, half)),
    delta(answer.slice(half)),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 8 } },
    { type: 'message_stop' },
  ]
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}
