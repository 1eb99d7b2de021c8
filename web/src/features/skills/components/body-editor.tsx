import { type ReactNode, useState } from 'react'
import { CodeBlock } from '@/components/ui/code-block'
import { Markdown } from '@/components/ui/markdown'
import { Section } from '@/components/ui/section'
import { Segmented } from '@/components/ui/segmented'
import type { Finding } from '@/lib/api/types'
import styles from './body-editor.module.css'
import { AreaField, Findings } from './found'

type View = 'write' | 'preview' | 'file'

const views = [
  { value: 'write', label: 'Write' },
  { value: 'preview', label: 'Preview' },
  { value: 'file', label: 'SKILL.md', hint: 'The whole file as a run would get it' },
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
      title="Instructions"
      lead={<>Markdown. <code>{'{{parameter}}'}</code> is replaced by the value of the parameter of that name.</>}
      action={<Segmented label="Instructions as" choices={views} value={view} onChange={setView} />}
    >
      {view === 'write' && <AreaField label="Instructions" isLabelHidden isCode isLarge rows={14} value={body} findings={findings} onChange={onChange} />}
      {view === 'preview' && (
        <div className={styles.preview} role="region" aria-label="Preview">
          {body.trim() === '' ? <p className={styles.nothing}>Empty</p> : <Markdown text={body} />}
        </div>
      )}
      {view === 'file' &&
        (preview === null ? (
          <p className={styles.nothing}>Shown once the errors are fixed.</p>
        ) : (
          <CodeBlock code={preview} language="markdown" />
        ))}
      {view !== 'write' && <Findings findings={findings} />}
    </Section>
  )
}
