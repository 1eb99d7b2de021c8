import { type ReactNode, useState } from 'react'
import { CodeBlock } from '@/components/ui/code-block'
import { Markdown } from '@/components/ui/markdown'
import { Section } from '@/components/ui/section'
import { Segmented } from '@/components/ui/segmented'
import type { Finding } from '@/lib/api/types'
import styles from './body-editor.module.css'
import { AreaField, Findings } from './found'
import { WithCode } from '@/components/ui/with-code'
import { t } from '../texts'

type View = 'write' | 'preview' | 'file'

const views = [
  { value: 'write', get label() { return t.write } },
  { value: 'preview', get label() { return t.preview } },
  { value: 'file', label: 'SKILL.md', get hint() { return t.theWholeFileAsARunWould } },
] as const

interface BodyEditorProps {
  body: string
  preview: string | null
  findings: readonly Finding[]
  onChange: (body: string) => void
}

export function BodyEditor({ body, preview, findings, onChange }: BodyEditorProps): ReactNode {
  const [view, setView] = useState<View>('write')
  return (
    <Section
      title={t.instructions}
      lead={<><WithCode text={t.markdownParameterIsReplacedByTheValue} /></>}
      action={<Segmented label={t.instructionsAs} choices={views} value={view} onChange={setView} />}
    >
      {view === 'write' && <AreaField label={t.instructions} isLabelHidden isCode isLarge rows={14} value={body} findings={findings} onChange={onChange} />}
      {view === 'preview' && (
        <div className={styles.preview} role="region" aria-label={t.preview}>
          {body.trim() === '' ? <p className={styles.nothing}>{t.empty}</p> : <Markdown text={body} />}
        </div>
      )}
      {view === 'file' &&
        (preview === null ? (
          <p className={styles.nothing}>{t.shownOnceTheErrorsAreFixed}</p>
        ) : (
          <CodeBlock code={preview} language="markdown" />
        ))}
      {view !== 'write' && <Findings findings={findings} />}
    </Section>
  )
}
