import { explain } from '@/lib/api/client'
import { notify } from '@/lib/notices'
import { type Store, createStore } from '@/lib/store'
import { uploadFile } from '../api/uploads'
import { keepUploads, keptUploads } from './kept-uploads'
import { type Upload, accepted } from './uploads'

const pictures = /^image\/(png|jpeg|gif|webp)$/
let nextKey = 1

/**
 * The files that are to go with the next message of one room. They begin to go as soon as they are chosen, so that most
 * are there when the message is written, and they stay when one looks into another room meanwhile.
 */
export class UploadList {
  readonly store: Store<readonly Upload[]>
  private readonly sent = new Map<number, { file: File; cancel: () => void }>()

  constructor(roomId: string) {
    this.store = createStore<readonly Upload[]>(keptUploads(roomId, () => nextKey++))
    this.store.subscribe(() => keepUploads(roomId, this.store.get()))
  }

  add(files: Iterable<File>): void {
    const { taken, problems } = accepted([...files], this.store.get().length)
    for (const problem of problems) notify(problem, 'problem')
    for (const file of taken) {
      const preview = pictures.test(file.type) ? URL.createObjectURL(file) : null
      const upload = { key: nextKey++, name: file.name, size: file.size, preview, share: 0, problem: null, attachment: null }
      this.store.set([...this.store.get(), upload])
      this.start(upload.key, file)
    }
  }

  retry(key: number): void {
    const file = this.sent.get(key)?.file
    if (!file) return
    this.change(key, { problem: null, share: 0 })
    this.start(key, file)
  }

  remove(key: number): void {
    this.sent.get(key)?.cancel()
    this.sent.delete(key)
    const preview = this.store.get().find((upload) => upload.key === key)?.preview
    if (preview?.startsWith('blob:')) URL.revokeObjectURL(preview)
    this.store.set(this.store.get().filter((upload) => upload.key !== key))
  }

  clear(): void {
    for (const { key } of this.store.get()) this.remove(key)
  }

  private start(key: number, file: File): void {
    const request = uploadFile(file, (share) => this.change(key, { share }))
    this.sent.set(key, { file, cancel: request.cancel })
    request.done.then(
      (attachment) => this.change(key, { attachment, share: 1 }),
      (error: unknown) => this.change(key, { problem: explain(error) }),
    )
  }

  private change(key: number, changes: Partial<Upload>): void {
    this.store.set(this.store.get().map((upload) => (upload.key === key ? { ...upload, ...changes } : upload)))
  }
}

const lists = new Map<string, UploadList>()

export function uploadsIn(roomId: string): UploadList {
  const list = lists.get(roomId) ?? new UploadList(roomId)
  lists.set(roomId, list)
  return list
}
