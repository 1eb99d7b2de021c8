import { Upload } from 'lucide-react'
import { type ReactNode, useRef } from 'react'
import { Button } from './button'

interface FileButtonProps {
  label: string
  accept?: string
  isMultiple?: boolean
  isBusy?: boolean
  onFiles: (files: File[]) => void
}

/** The browser's own way to choose files, behind a button that looks like the others. */
export function FileButton({ label, accept, isMultiple = false, isBusy, onFiles }: FileButtonProps): ReactNode {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <Button isBusy={isBusy} title={label} onClick={() => input.current?.click()}>
        <Upload size={15} aria-hidden />
        <span className="visually-hidden-narrow">{label}</span>
      </Button>
      <input
        ref={input}
        type="file"
        hidden
        accept={accept}
        multiple={isMultiple}
        aria-label={label}
        onChange={(event) => {
          const files = [...(event.target.files ?? [])]
          // The same file may be chosen again after it was changed.
          event.target.value = ''
          if (files.length > 0) onFiles(files)
        }}
      />
    </>
  )
}
