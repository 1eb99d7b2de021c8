import { type ReactNode, type RefObject } from 'react'
import { SaveBar } from '@/components/ui/save-bar'
import type { Finding } from '@/lib/api/types'
import { countFindings } from '../model/findings'
import { t } from '../texts'
import styles from './skill-save-bar.module.css'

interface SkillSaveBarProps {
  /** The text while there are no errors. */
  status: string
  findings: readonly Finding[]
  /** Where the findings are shown. */
  form: RefObject<Element | null>
  label: string
  isBusy: boolean
  isDisabled: boolean
  onSave: () => void
  children?: ReactNode
}

/** Errors come before warnings. */
export function showFirstFinding(form: Element | null): void {
  const found = form?.querySelector('[data-level=error]') ?? form?.querySelector('[data-level]')
  found?.scrollIntoView({ block: 'nearest' })
  const field = found?.parentElement?.id ? form?.querySelector<HTMLElement>(`[aria-describedby~="${found.parentElement.id}"]`) : null
  field?.focus({ preventScroll: true })
}

/** Counts the findings and leads to the first one. */
export function SkillSaveBar({ status, findings, form, children, ...save }: SkillSaveBarProps): ReactNode {
  const counted = countFindings(findings)
  return (
    <SaveBar status={<p role="status">{status}</p>} {...save}>
      {counted && (
        <button type="button" className={styles.found} title={t.goThere} onClick={() => showFirstFinding(form.current)}>
          {counted}
        </button>
      )}
      {children}
    </SaveBar>
  )
}
