// A small MCP server over its input and output, for the tests: one good tool, one that fails, and one that no client should offer.
import { createInterface } from 'node:readline'

const tools = [
  {
    name: 'greet',
    description: 'Greets somebody.',
    annotations: { readOnlyHint: true },
    inputSchema: {
      type: 'object',
      properties: {
        name: { type: 'string', description: 'Whom to greet' },
        times: { type: 'integer', default: 1 },
        tone: { type: 'string', enum: ['calm', 'loud'] },
      },
      required: ['name'],
    },
  },
  { name: 'token_length', description: 'Says how long the token is that it was given.', inputSchema: { type: 'object', properties: {} } },
  { name: 'refuse', description: 'Always fails.', inputSchema: { type: 'object', properties: {} } },
  { name: 'shapeless', description: 'Has no schema.' },
]

const text = (words, isError = false) => ({ content: [{ type: 'text', text: words }], isError })

function call({ name, arguments: given = {} }) {
  switch (name) {
    case 'greet': {
      const words = Array(given.times ?? 1).fill(`Hello ${given.name}`).join(', ')
      return text(given.tone === 'loud' ? words.toUpperCase() : words)
    }
    case 'token_length':
      return text(`The token has ${(process.env.SMALL_TOKEN ?? '').length} characters.`)
    default:
      return text('Not today.', true)
  }
}

function answer({ method, params }) {
  switch (method) {
    case 'initialize':
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'small', version: '1.2.3' }, instructions: 'Be kind.' }
    case 'tools/list':
      return { tools }
    case 'tools/call':
      return call(params)
    default:
      return {}
  }
}

process.stderr.write('small server: ready to greet\n')
createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line)
  if (message.id === undefined) return
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: message.id, result: answer(message) })}\n`)
})
