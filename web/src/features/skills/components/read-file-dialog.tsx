import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import styles from '@/components/ui/dialog-body.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import type { SkillSpec } from '@/lib/api/types'
import { checkSkill } from '../api/skills'
import { AreaField, Findings } from './found'
import { t } from '../texts'

const example = '---\nname: code-review\ndescription: Finds bugs in a change. Use it before a merge.\n---\n\n# How to review\n'

/** Reads a SKILL.md, shows errors in its frontmatter, and fills the form from it. */
export function ReadFileDialog({ onRead, onClose }: { onRead: (spec: SkillSpec) => void; onClose: () => void }): ReactNode {
  const [text, setText] = useState('')
  const check = useMutation({
    mutationFn: () => checkSkill({ text }),
    // Findings are shown first; a second press imports anyway.
    onSuccess: ({ skill, findings }) => skill && findings.length === 0 && onRead(skill),
  })
  const ready = check.data?.skill

  return (
    <Dialog title={t.importSkillMd} width="wide" onClose={onClose}>
      <div className={styles.body}>
        <AreaField
          label={t.theWholeFileWithItsFrontmatter}
          isCode
          isLarge
          rows={12}
          value={text}
          placeholder={example}
          findings={[]}
          onChange={(changed) => {
            setText(changed)
            check.reset()
          }}
        />
        <Findings findings={check.data?.findings ?? []} />
        {check.error && <ProblemNote title={t.couldNotReadIt} error={check.error} />}
        <div className={styles.actions}>
          <Button onClick={onClose}>{t.cancel}</Button>
          {ready ? (
            <Button look="primary" onClick={() => onRead(ready)}>
              {t.importAnyway}
            </Button>
          ) : (
            <Button look="primary" isBusy={check.isPending} disabled={text.trim() === ''} onClick={() => check.mutate()}>
              {t.checkAndImport}
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  )
}
