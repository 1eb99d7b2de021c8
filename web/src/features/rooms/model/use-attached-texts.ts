import { useState } from 'react'
import { notify } from '@/lib/notices'
import { type AttachedText, readText } from './attached-text'

interface AttachedTexts {
  files: readonly AttachedText[]
  add: (list: FileList) => Promise<void>
  remove: (index: number) => void
  clear: () => void
}

export function useAttachedTexts(): AttachedTexts {
  const [files, setFiles] = useState<readonly AttachedText[]>([])
  const add = async (list: FileList): Promise<void> => {
    for (const file of await Promise.all([...list].map(readText))) {
      if (typeof file === 'string') notify(file, 'problem')
      else setFiles((known) => [...known, file])
    }
  }
  return {
    files,
    add,
    remove: (index) => setFiles((known) => known.filter((_, at) => at !== index)),
    clear: () => setFiles([]),
  }
}
