import type { Attachment } from '@/lib/api/types'
import { remember, remembered } from '@/lib/storage'
import type { Upload } from './uploads'

interface KeptUpload {
  size: number
  attachment: Attachment
}

const key = (roomId: string): string => `files.${roomId}`

/** What was uploaded for the next message of a room is there again after a reload; what was still on its way is not. */
export function keptUploads(roomId: string, nextKey: () => number): Upload[] {
  return remembered<KeptUpload[]>(key(roomId), []).map(({ size, attachment }) => ({
    key: nextKey(),
    name: attachment.name,
    size,
    preview: /^image\/(png|jpeg|gif|webp)$/.test(attachment.media_type) ? attachment.url : null,
    share: 1,
    problem: null,
    attachment,
  }))
}

export function keepUploads(roomId: string, uploads: readonly Upload[]): void {
  const kept = uploads.flatMap(({ size, attachment }) => (attachment ? [{ size, attachment }] : []))
  remember(key(roomId), kept.length > 0 ? kept : null)
}
