import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContext, type BrowserContextOptions, type Page, chromium } from 'playwright-core'
import { type PreviewServer, preview } from 'vite'
import { diagnose, hasFailed } from './diagnosis'
import { Server } from './server'

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A server, its page and browsers to look at it with. */
export class Stage {
  private program: Browser | null = null
  private readonly contexts: BrowserContext[] = []
  /** What browsers complained of: errors, violations of the policy, requests to anywhere else. */
  readonly complaints: string[] = []

  private constructor(
    readonly server: Server,
    private readonly face: PreviewServer | null,
    readonly url: string,
  ) {}

  static async open(): Promise<Stage> {
    const server = await Server.start()
    // Where the server brings the page itself, that one is tested; until then a build of it stands in front.
    if (process.env.GREENROOM_EMBEDS_UI) return new Stage(server, null, server.url)
    if (process.env.GREENROOM_WEB_URL) return new Stage(server, null, process.env.GREENROOM_WEB_URL)
    process.env.GREENROOM_URL = server.url
    const root = new URL('../..', import.meta.url).pathname
    const face = await preview({ root, logLevel: 'error', preview: { host: '127.0.0.1', port: 0 } })
    return new Stage(server, face, face.resolvedUrls?.local[0]?.replace(/\/$/, '') ?? '')
  }

  /** As good as a browser of its own: it shares nothing with the others but the program, which takes its time to start. */
  async browser(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    this.program ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? findChromium(), headless: true, args: flags })
    const context = await this.program.newContext(options)
    context.setDefaultTimeout(60_000)
    context.on('console', (message) => {
      const text = message.text()
      if (message.type() === 'error' && !isExpected(text)) this.complaints.push(text)
    })
    context.on('weberror', (error) => this.complaints.push(String(error.error())))
    context.on('request', (request) => {
      const isOurs = request.url().startsWith(this.url) || /^(data|blob):/.test(request.url())
      if (!isOurs) this.complaints.push(`a request left for ${request.url()}`)
    })
    this.contexts.push(context)
    return context
  }

  async page(path = '/', options: BrowserContextOptions = {}): Promise<Page> {
    const context = await this.browser({ viewport: { width: 1280, height: 800 }, ...options })
    const page = await context.newPage()
    await page.goto(this.url + path)
    return page
  }

  async closeBrowsers(): Promise<void> {
    if (hasFailed() && this.contexts.length > 0) console.error(await diagnose(this.contexts, this.server))
    for (const context of this.contexts.splice(0)) await context.close()
  }

  async close(): Promise<void> {
    await this.closeBrowsers()
    await this.program?.close()
    await this.face?.close()
    await this.server.stop()
  }
}

/** A server that is down or a network that is off cannot be reached, and a browser says so. */
function isExpected(text: string): boolean {
  return /ERR_(CONNECTION|INTERNET|NETWORK|EMPTY|INCOMPLETE)|WebSocket|status of (404|409|50\d)/.test(text)
}

function findChromium(): string {
  const names = ['chromium', 'chromium-browser', 'google-chrome']
  const folders = (process.env.PATH ?? '').split(delimiter)
  const found = folders.flatMap((folder) => names.map((name) => join(folder, name))).find((path) => existsSync(path))
  if (!found) throw new Error('No Chromium was found; install it, or set CHROMIUM to its program.')
  return found
}
