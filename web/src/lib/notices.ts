import { createStore } from './store'

export interface Notice {
  id: number
  text: string
  kind: 'done' | 'problem'
}

export const noticeStore = createStore<readonly Notice[]>([])
let nextId = 1

/** All go by themselves; problems take their time. */
export function notify(text: string, kind: Notice['kind'] = 'done'): void {
  const id = nextId++
  noticeStore.set([...noticeStore.get().slice(-3), { id, text, kind }])
  setTimeout(() => dismiss(id), kind === 'problem' ? 15_000 : 4000)
}

export function dismiss(id: number): void {
  noticeStore.set(noticeStore.get().filter((notice) => notice.id !== id))
}
