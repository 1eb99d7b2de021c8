import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import styles from '@/components/ui/dialog-body.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import type { Finding, SkillSpec } from '@/lib/api/types'
import { useAction } from '@/lib/use-action'
import { checkSkill } from '../api/skills'
import { AreaField, Findings } from './found'

const example = '---\nname: code-review\ndescription: Finds bugs in a change. Use it before a merge.\n---\n\n# How to review\n'

/** Reads a SKILL.md, shows errors in its frontmatter, and fills the form from it. */
export function ReadFileDialog({ onRead, onClose }: { onRead: (spec: SkillSpec) => void; onClose: () => void }): ReactNode {
  const [text, setText] = useState('')
  const [findings, setFindings] = useState<Finding[]>([])
  const [ready, setReady] = useState<SkillSpec | null>(null)
  const { isBusy, problem, run } = useAction()

  const read = (): Promise<boolean> =>
    run(async () => {
      const check = await checkSkill({ text })
      setFindings(check.findings)
      // Findings are shown first; a second press imports anyway.
      if (check.skill && check.findings.length === 0) onRead(check.skill)
      else setReady(check.skill ?? null)
    })

  return (
    <Dialog title="Read a SKILL.md" width="wide" onClose={onClose}>
      <div className={styles.body}>
        <AreaField
          label="The whole file, with its frontmatter"
          isCode
          isLarge
          rows={12}
          value={text}
          placeholder={example}
          findings={[]}
          onChange={(changed) => {
            setText(changed)
            setReady(null)
          }}
        />
        <Findings findings={findings} />
        {problem != null && <ProblemNote title="It could not be read" error={problem} />}
        <div className={styles.actions}>
          <Button onClick={onClose}>Cancel</Button>
          {ready ? (
            <Button look="primary" onClick={() => onRead(ready)}>
              Take it over all the same
            </Button>
          ) : (
            <Button look="primary" isBusy={isBusy} disabled={text.trim() === ''} onClick={() => void read()}>
              Check and take it over
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  )
}
