import { type ReactNode, useRef } from 'react'
import { Button } from '@/components/ui/button'
import type { Finding } from '@/lib/api/types'
import { countFindings } from '../model/findings'
import styles from './save-bar.module.css'

interface SaveBarProps {
  /** The text while there are no errors. */
  status: string
  findings: readonly Finding[]
  label: string
  isBusy: boolean
  isDisabled: boolean
  onSave: () => void
  children?: ReactNode
}

/** Errors come before warnings. */
export function showFirstFinding(form: Element | null | undefined): void {
  const found = form?.querySelector('[data-level=error]') ?? form?.querySelector('[data-level]')
  found?.scrollIntoView({ block: 'nearest' })
  const field = found?.parentElement?.id ? form?.querySelector<HTMLElement>(`[aria-describedby~="${found.parentElement.id}"]`) : null
  field?.focus({ preventScroll: true })
}

/** Stays in sight at the foot of a long form. */
export function SaveBar({ status, findings, label, isBusy, isDisabled, onSave, children }: SaveBarProps): ReactNode {
  const counted = countFindings(findings)
  const bar = useRef<HTMLDivElement>(null)
  return (
    <div className={styles.bar} ref={bar}>
      <p className={styles.status} role="status">
        {status}
      </p>
      {counted && (
        <button type="button" className={styles.found} title="Go there" onClick={() => showFirstFinding(bar.current?.parentElement)}>
          {counted}
        </button>
      )}
      {children}
      <Button look="primary" isBusy={isBusy} disabled={isDisabled} onClick={onSave}>
        {label}
      </Button>
    </div>
  )
}
