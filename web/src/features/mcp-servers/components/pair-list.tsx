import { Plus, X } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button, IconButton } from '@/components/ui/button'
import fields from '@/components/ui/fieldset.module.css'
import type { Pair } from '../model/entry-draft'
import { t } from '../texts'
import styles from './server-form.module.css'

interface PairListProps {
  label: string
  keyLabel: string
  pairs: readonly Pair[]
  problem: string | null
  onChange: (pairs: readonly Pair[]) => void
}

/** Names with values that are written and never read. */
export function PairList({ label, keyLabel, pairs, problem, onChange }: PairListProps): ReactNode {
  const put = (index: number, changes: Partial<Pair>): void => onChange(pairs.map((pair, at) => (at === index ? { ...pair, ...changes } : pair)))
  return (
    <fieldset className={fields.fieldset}>
      <legend className={fields.legend}>{label}</legend>
      {pairs.map((pair, index) => (
        <div key={index} className={styles.pair}>
          <input
            aria-label={`${keyLabel} ${index + 1}`}
            placeholder={keyLabel}
            value={pair.key}
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
            onChange={(event) => put(index, { key: event.target.value, isStored: false })}
          />
          <input
            aria-label={t.valueOf(pair.key || `${keyLabel} ${index + 1}`)}
            placeholder={pair.isStored ? t.unchanged : t.valueOrVariable}
            value={pair.value}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => put(index, { value: event.target.value })}
          />
          <IconButton label={t.remove(pair.key || t.thisLine)} onClick={() => onChange(pairs.filter((_, at) => at !== index))}>
            <X size={15} aria-hidden />
          </IconButton>
        </div>
      ))}
      {problem && (
        <p className={styles.problem} role="alert">
          {problem}
        </p>
      )}
      <div>
        <Button size="small" onClick={() => onChange([...pairs, { key: '', value: '', isStored: false }])}>
          <Plus size={13} aria-hidden />
          {t.addALine}
        </Button>
      </div>
    </fieldset>
  )
}
