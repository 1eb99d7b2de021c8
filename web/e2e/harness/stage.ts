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

  private running: { server: Server; url: string } | null = null
  private face: PreviewServer | null = null

  static async open(variables: Record<string, string> = {}): Promise<Stage> {
    const stage = new Stage()
    await stage.start(variables)
    return stage
  }

  async start(variables: Record<string, string> = {}): Promise<void> {
    const server = await Server.start(variables)
    // Where the server brings the page itself, that one is tested; until then a build of it stands in front.
    const url = process.env.GREENROOM_EMBEDS_UI ? server.url : process.env.GREENROOM_WEB_URL
    this.running = { server, url: url || (await this.preview(server)) }
  }

  get server(): Server {
    if (!this.running) throw new Error('The stage is not open yet.')
    return this.running.server
  }

  get url(): string {
    return this.running?.url ?? ''
  }

  private async preview(server: Server): Promise<string> {
    process.env.GREENROOM_URL = server.url
    const root = new URL('../..', import.meta.url).pathname
    this.face = await preview({ root, logLevel: 'error', preview: { host: '127.0.0.1', port: 0 } })
    return this.face.resolvedUrls?.local[0]?.replace(/\/$/, '') ?? ''
  }

  /** As good as a browser of its own: it shares nothing with the others but the program, which takes its time to start. */
  async browser(options: BrowserContextOptions = {}, isSignedIn = true): Promise<BrowserContext> {
    this.program ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? findChromium(), headless: true, args: flags })
    // Requests of a service worker cannot be seen or cut off here; only its own test has one.
    const context = await this.program.newContext({ serviceWorkers: 'block', ...options })
    context.setDefaultTimeout(Number(process.env.GREENROOM_E2E_TIMEOUT ?? 60_000))
    if (isSignedIn) await context.addCookies([{ ...(await this.server.signIn()), url: this.url }])
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

  async page(path = '/', options: BrowserContextOptions = {}, isSignedIn = true): Promise<Page> {
    const context = await this.browser({ viewport: { width: 1280, height: 800 }, ...options }, isSignedIn)
    const page = await context.newPage()
    await page.goto(this.url + path)
    return page
  }

  /** A page in a browser that is not signed in. */
  stranger(path = '/', options: BrowserContextOptions = {}): Promise<Page> {
    return this.page(path, options, false)
  }

  async closeBrowsers(): Promise<void> {
    if (hasFailed() && this.contexts.length > 0) console.error(await diagnose(this.contexts, this.server))
    for (const context of this.contexts.splice(0)) await context.close()
  }

  async close(): Promise<void> {
    await this.closeBrowsers()
    await this.program?.close()
    await this.face?.close()
    await this.running?.server.stop()
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
