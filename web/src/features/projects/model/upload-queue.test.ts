import { expect, it } from 'vitest'
import { ApiError } from '@/lib/api/client'
import { UploadQueue } from './upload-queue'

interface Sent {
  path: string
  progress: (share: number) => void
  resolve: () => void
  reject: (error: Error) => void
  isCancelled: boolean
}

function queueWithSender() {
  const sent: Sent[] = []
  const stored: string[] = []
  const queue = new UploadQueue(
    (folder, file, progress) => {
      const one: Sent = { path: `${folder}/${file.name}`, progress, resolve: () => {}, reject: () => {}, isCancelled: false }
      const done = new Promise<string>((resolve, reject) => {
        one.resolve = () => resolve('')
        one.reject = reject
      })
      sent.push(one)
      return { done, cancel: () => (one.isCancelled = true) }
    },
    (path) => stored.push(path),
  )
  return { queue, sent, stored }
}

const files = (...names: string[]): File[] => names.map((name) => new File(['x'], name))
const settled = () => new Promise((resolve) => setTimeout(resolve, 0))

it('three files are on their way at a time, and the next begins when one has arrived', async () => {
  const { queue, sent, stored } = queueWithSender()
  queue.add('docs', files('a', 'b', 'c', 'd'))
  expect(sent.map(({ path }) => path)).toEqual(['docs/a', 'docs/b', 'docs/c'])
  sent[0]?.progress(0.5)
  expect(queue.store.get().map(({ share, state }) => [share, state])).toEqual([[0.5, 'sending'], [0, 'sending'], [0, 'sending'], [0, 'waiting']])
  sent[0]?.resolve()
  await settled()
  expect(stored).toEqual(['docs/a'])
  expect(sent.at(-1)?.path).toBe('docs/d')
  expect(queue.store.get()).toHaveLength(3)
})

it('a failed file says why, does not hold up the others, and can be sent again', async () => {
  const { queue, sent, stored } = queueWithSender()
  queue.add('', files('a'))
  sent[0]?.reject(new ApiError('The project is full.', 'storage_full', 507))
  await settled()
  const [failed] = queue.store.get()
  expect(failed).toMatchObject({ state: 'failed', problem: 'The project is full.' })
  queue.retry(failed?.key ?? 0)
  expect(sent).toHaveLength(2)
  sent[1]?.resolve()
  await settled()
  expect(stored).toEqual(['a'])
})

it('a cancelled file is stopped and makes room for the next', async () => {
  const { queue, sent, stored } = queueWithSender()
  queue.add('', files('a', 'b', 'c', 'd'))
  queue.remove(queue.store.get()[0]?.key ?? 0)
  sent[0]?.reject(new Error('aborted'))
  await settled()
  expect(sent[0]?.isCancelled).toBe(true)
  expect(sent).toHaveLength(4)
  expect(stored).toEqual([])
  expect(queue.store.get().map(({ path }) => path)).toEqual(['b', 'c', 'd'])
})
