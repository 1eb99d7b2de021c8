import { type Server as NetServer, type Socket, connect, createServer } from 'node:net'

/** Stands in front of a server and cuts every open connection when it is told to. */
export class CuttingProxy {
  private readonly sockets = new Set<Socket>()
  /** How many connections were made. */
  connections = 0

  private constructor(
    private readonly listener: NetServer,
    readonly url: string,
  ) {}

  static start(port: number): Promise<CuttingProxy> {
    return new Promise((resolve, reject) => {
      const listener = createServer()
      listener.once('error', reject)
      listener.listen(0, '127.0.0.1', () => {
        const address = listener.address()
        if (typeof address !== 'object' || !address) return reject(new Error('no port'))
        const proxy = new CuttingProxy(listener, `http://127.0.0.1:${address.port}`)
        listener.on('connection', (socket) => proxy.join(socket, connect(port, '127.0.0.1')))
        resolve(proxy)
      })
    })
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.listener.close(resolve))
  }

  private join(browser: Socket, server: Socket): void {
    this.connections += 1
    browser.pipe(server).pipe(browser)
    for (const socket of [browser, server]) {
      this.sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.sockets.delete(socket)
        browser.destroy()
        server.destroy()
      })
    }
  }
}
