import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Select } from '@/components/ui/select'
import type { Agent } from '@/lib/api/types'
import { t } from '../texts'
import styles from './tape-section.module.css'

/** Lets an agent speak before what is planned. */
export function InsertAgent({ members, isBusy, onInsert }: { members: readonly Agent[]; isBusy: boolean; onInsert: (agent: string) => void }): ReactNode {
  const [chosen, setChosen] = useState(members[0]?.id ?? '')
  return (
    <div className={styles.insert}>
      <Select label={t.letSpeakNext} value={chosen} options={members.map(({ id, name }) => ({ value: id, label: name }))} onChange={setChosen} />
      <Button size="small" isBusy={isBusy} disabled={chosen === ''} onClick={() => onInsert(chosen)}>
        {t.insert}
      </Button>
    </div>
  )
}
