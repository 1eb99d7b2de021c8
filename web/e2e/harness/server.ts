import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const logLength = 3000

/** The real server in a folder of its own, on a port that stays the same when it comes back. */
export class Server {
  private child: ChildProcess | null = null
  /** The end of what it wrote of itself. */
  log = ''

  private constructor(
    private readonly program: string,
    readonly folder: string,
    readonly port: number,
    private readonly variables: Record<string, string>,
  ) {}

  /** `variables` are added to its environment. */
  static async start(variables: Record<string, string> = {}): Promise<Server> {
    const program = process.env.GREENROOM_BIN
    if (!program) throw new Error('Set GREENROOM_BIN to the greenroom program that the tests are to drive.')
    const folder = mkdtempSync(join(tmpdir(), 'greenroom-e2e-'))
    const server = new Server(program, folder, await freePort(), variables)
    await server.up()
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async up(): Promise<void> {
    const child = spawn(this.program, ['serve', '--listen', `127.0.0.1:${this.port}`, '--data-dir', this.folder], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.variables },
    })
    this.child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.log = (this.log + text).slice(-logLength)))
    }
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (text: string) => text.includes('listening') && resolve())
      child.once('exit', (code) => reject(new Error(`the server ended with ${code} before it was ready: ${this.log}`)))
    })
  }

  /** As a power cut would: nothing is told, nothing is flushed. */
  async kill(): Promise<void> {
    await this.end('SIGKILL')
  }

  async stop(): Promise<void> {
    await this.end('SIGTERM')
    rmSync(this.folder, { recursive: true, force: true })
  }

  api<T>(path: string, body?: unknown): Promise<T> {
    return this.send(body === undefined ? 'GET' : 'POST', path, body)
  }

  async send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const content = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await this.fetch(path, { method, ...content })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (response.status === 204 ? null : await response.json()) as T
  }

  /** A request of the operator, with the local key. */
  fetch(path: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<Response> {
    return fetch(`${this.url}/api${path}`, { ...init, headers: { ...init.headers, authorization: `Bearer ${this.key}` } })
  }

  /** The local key, which makes its holder the operator. */
  get key(): string {
    return readFileSync(join(this.folder, 'local.key'), 'utf8').trim()
  }

  /** Signs a browser in as the operator and returns its cookie. */
  async signIn(): Promise<{ name: string; value: string }> {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${this.url}/api/session`, { method: 'POST', headers, body: JSON.stringify({ token: this.key }) })
    const [name, value] = response.headers.get('set-cookie')?.split(';')[0]?.split('=') ?? []
    if (!name || !value) throw new Error(`no cookie: ${response.status} ${await response.text()}`)
    return { name, value }
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this
    this.child = null
    if (!child || child.exitCode !== null) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await gone
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => (typeof address === 'object' && address ? resolve(address.port) : reject(new Error('no port'))))
    })
  })
}
