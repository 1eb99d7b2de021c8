import { explain } from '@/lib/api/client'
import type { SentBody } from '@/lib/send-body'
import { createStore } from '@/lib/store'
import { childPath } from './paths'

export interface FileUpload {
  key: number
  path: string
  size: number
  /** The sent fraction, from 0 to 1. */
  share: number
  state: 'waiting' | 'sending' | 'failed'
  problem: string | null
}

type Send = (folder: string, file: File, onProgress: (share: number) => void) => SentBody

/** The server takes 8 at a time from a workspace; a browser leaves some to others. */
const mostAtOnce = 3
let nextKey = 1

/** Uploads that wait, are on their way, or have failed; what has arrived leaves the list. */
export class UploadQueue {
  readonly store = createStore<readonly FileUpload[]>([])
  private readonly files = new Map<number, { folder: string; file: File; cancel: () => void }>()

  constructor(
    private readonly send: Send,
    private readonly onStored: (path: string) => void,
  ) {}

  add(folder: string, files: Iterable<File>): void {
    for (const file of files) {
      const key = nextKey++
      this.files.set(key, { folder, file, cancel: () => {} })
      this.store.set([...this.store.get(), { key, path: childPath(folder, file.name), size: file.size, share: 0, state: 'waiting', problem: null }])
    }
    this.advance()
  }

  retry(key: number): void {
    this.change(key, { state: 'waiting', problem: null, share: 0 })
    this.advance()
  }

  remove(key: number): void {
    const entry = this.files.get(key)
    this.files.delete(key)
    this.store.set(this.store.get().filter((upload) => upload.key !== key))
    entry?.cancel()
    this.advance()
  }

  private advance(): void {
    const uploads = this.store.get()
    const free = mostAtOnce - uploads.filter(({ state }) => state === 'sending').length
    for (const { key } of uploads.filter(({ state }) => state === 'waiting').slice(0, Math.max(0, free))) this.start(key)
  }

  private start(key: number): void {
    const entry = this.files.get(key)
    if (!entry) return
    this.change(key, { state: 'sending' })
    const sent = this.send(entry.folder, entry.file, (share) => this.change(key, { share }))
    entry.cancel = sent.cancel
    sent.done.then(
      () => {
        if (!this.files.has(key)) return
        this.remove(key)
        this.onStored(childPath(entry.folder, entry.file.name))
      },
      (error: unknown) => {
        this.change(key, { state: 'failed', problem: explain(error) })
        this.advance()
      },
    )
  }

  private change(key: number, changes: Partial<FileUpload>): void {
    this.store.set(this.store.get().map((upload) => (upload.key === key ? { ...upload, ...changes } : upload)))
  }
}
