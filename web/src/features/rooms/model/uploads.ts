import type { Attachment } from '@/lib/api/types'
import { t } from '../texts'

/** A file that is to go with the next message. */
export interface Upload {
  key: number
  name: string
  size: number
  /** What there is to see of a picture before it is sent. */
  preview: string | null
  /** The uploaded fraction, from 0 to 1. */
  share: number
  problem: string | null
  attachment: Attachment | null
}

/** What the server takes: of one file, and with one message. */
const mostBytes = 25_000_000
const mostFiles = 32

/** Why files are not taken at all, and those that are. */
export function accepted(files: readonly File[], already: number): { taken: File[]; problems: string[] } {
  const problems: string[] = []
  const fitting = files.filter((file) => {
    const problem = file.size > mostBytes ? t.isLargerThan25MbMakeIt : file.size === 0 ? t.isEmpty : null
    if (problem) problems.push(`${file.name} ${problem}`)
    return !problem
  })
  const room = Math.max(0, mostFiles - already)
  if (fitting.length > room) problems.push(t.aMessageCanHaveFilesWereNot(mostFiles, fitting.length - room))
  return { taken: fitting.slice(0, room), problems }
}

export type Readiness = 'nothing' | 'sending' | 'failed' | 'ready'

export function readinessOf(uploads: readonly Upload[]): Readiness {
  if (uploads.length === 0) return 'nothing'
  if (uploads.some((upload) => upload.problem !== null)) return 'failed'
  return uploads.every((upload) => upload.attachment !== null) ? 'ready' : 'sending'
}
