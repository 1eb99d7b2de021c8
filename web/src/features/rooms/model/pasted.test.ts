import { expect, it } from 'vitest'
import { pastedFiles } from './pasted'

const paste = (text: string, files: File[] = []): Pick<DataTransfer, 'files' | 'getData'> => ({ files: files as unknown as FileList, getData: () => text })

it('a short text stays text, a long one becomes a file, and files are files', async () => {
  expect(pastedFiles(paste('short'))).toEqual([])
  const [file] = pastedFiles(paste('x'.repeat(200_001)))
  expect(file?.name).toBe('pasted-text.txt')
  expect(await file?.text()).toHaveLength(200_001)
  const picture = new File(['p'], 'p.png')
  expect(pastedFiles(paste('x'.repeat(200_001), [picture]))).toEqual([picture])
})
