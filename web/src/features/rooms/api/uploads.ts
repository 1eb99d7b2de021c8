import { type SentBody, sendBody } from '@/lib/send-body'
import type { Attachment } from '@/lib/api/types'

const mostMinutes = 10

/** Uploads one file, which a message can then name. */
export function uploadFile(file: File, onProgress: (share: number) => void): Pick<SentBody, 'cancel'> & { done: Promise<Attachment> } {
  const sent = sendBody(`/api/uploads?name=${encodeURIComponent(file.name)}`, file, mostMinutes, onProgress)
  return { done: sent.done.then(attachmentFrom), cancel: sent.cancel }
}

function attachmentFrom(text: string): Attachment {
  const { name, media_type, url } = JSON.parse(text) as Attachment
  return { name, media_type, url }
}
