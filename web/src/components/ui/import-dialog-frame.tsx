import { FileJson } from 'lucide-react'
import { type ReactNode, useRef } from 'react'
import { Button } from './button'
import styles from './dialog-body.module.css'
import { Dialog } from './dialog'
import { FormField } from './form-field'
import { t } from '../texts'

interface ImportDialogFrameProps {
  title: string
  /** What the button that opens the file chooser says. */
  choose: string
  fileLabel: string
  text: string
  rows: number
  placeholder: string
  hint?: string
  problem: string | null
  onText: (text: string) => void
  onFile: (file: File) => void
  onClose: () => void
  /** What was found in it, between the field and the buttons. */
  children: ReactNode
  actions: ReactNode
}

/** The frame of a dialog that takes JSON from a file or from a field. */
export function ImportDialogFrame(props: ImportDialogFrameProps): ReactNode {
  const { title, choose, fileLabel, text, rows, placeholder, hint, problem, onText, onFile, onClose, children, actions } = props
  const picker = useRef<HTMLInputElement>(null)
  return (
    <Dialog title={title} onClose={onClose}>
      <div className={styles.body}>
        <div>
          <Button onClick={() => picker.current?.click()}>
            <FileJson size={15} aria-hidden />
            {choose}
          </Button>
          <input
            ref={picker}
            type="file"
            accept=".json,application/json"
            hidden
            aria-label={fileLabel}
            onChange={(event) => {
              const file = event.target.files?.[0]
              if (file) onFile(file)
              event.target.value = ''
            }}
          />
        </div>
        <FormField label={t.orPasteItHere} problem={problem} hint={hint}>
          {(control) => <textarea {...control} rows={rows} spellCheck={false} placeholder={placeholder} value={text} onChange={(event) => onText(event.target.value)} />}
        </FormField>
        {children}
        <div className={styles.actions}>{actions}</div>
      </div>
    </Dialog>
  )
}
