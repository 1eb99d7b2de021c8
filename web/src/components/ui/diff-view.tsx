import { type ReactNode, memo, useMemo } from 'react'
import { type DiffLine, diffLines } from '@/lib/diff'
import lineStyles from './diff-line.module.css'
import styles from './diff-view.module.css'
import { VisibleText } from './visible-text'
import { t } from '../texts'

/** Unchanged lines around a change that are worth reading. */
const context = 3
const signs = { same: ' ', added: '+', removed: '−' }

export const DiffView = memo(function DiffView({ before, after }: { before: string; after: string }): ReactNode {
  const lines = useMemo(() => withoutQuiet(diffLines(before, after)), [before, after])
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className={styles.diff} tabIndex={0} role="group" aria-label={t.changes}>
      {lines.map((line, index) =>
        line === 'skipped' ? (
          <span key={index} className={styles.skipped}>
            ⋯
          </span>
        ) : (
          <span key={index} className={lineStyles.line} data-kind={line.kind}>
            <span className={lineStyles.sign}>{signs[line.kind]}</span>
            {line.text ? <VisibleText text={line.text} /> : ' '}
          </span>
        ),
      )}
    </pre>
  )
})

function withoutQuiet(lines: DiffLine[]): (DiffLine | 'skipped')[] {
  const isNear = lines.map((_, index) => lines.slice(Math.max(0, index - context), index + context + 1).some((line) => line.kind !== 'same'))
  return lines.flatMap<DiffLine | 'skipped'>((line, index) => {
    if (isNear[index]) return [line]
    return isNear[index - 1] || index === 0 ? ['skipped'] : []
  })
}
