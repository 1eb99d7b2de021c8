import { type ReactNode, memo, useMemo } from 'react'
import lineStyles from '@/components/ui/diff-line.module.css'
import { classNames } from '@/lib/class-names'
import { readUnified } from '../model/unified-diff'
import { t } from '../texts'
import styles from './unified-diff.module.css'

const signs = { same: ' ', added: '+', removed: '−', place: '', note: '' }
const words = { get added() { return t.added }, get removed() { return t.removed } } as Record<string, string>

/** A diff that the server made. */
export const UnifiedDiff = memo(function UnifiedDiff({ diff, label }: { diff: string; label: string }): ReactNode {
  const lines = useMemo(() => readUnified(diff), [diff])
  if (lines.length === 0) return <p className={styles.nothing}>{t.noDifferences}</p>
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className={styles.diff} tabIndex={0} role="region" aria-label={label}>
      {lines.map(({ kind, text }, index) => (
        <span key={index} className={classNames(lineStyles.line, lineStyles.wide)} data-kind={kind}>
          <span className={lineStyles.sign} aria-hidden>
            {signs[kind]}
          </span>
          {words[kind] && <span className="visually-hidden">{words[kind]}</span>}
          {kind === 'place' ? '⋯' : text || ' '}
        </span>
      ))}
    </pre>
  )
})
