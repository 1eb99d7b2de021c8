import type { ReactNode } from 'react'
import { CodeBlock } from '@/components/ui/code-block'
import { DiffView } from '@/components/ui/diff-view'
import { VisibleText } from '@/components/ui/visible-text'
import { viewOf } from '../model/tool-input'
import styles from './tool-input.module.css'

/** Exactly what a tool is given, in the form that is easiest to judge. Characters that cannot be seen are shown as badges. */
export function ToolInput({ input }: { input: unknown }): ReactNode {
  const view = viewOf(input)
  switch (view.kind) {
    case 'edits':
      return (
        <div className={styles.edits}>
          <p className={styles.path}>
            <VisibleText text={view.path} />
          </p>
          {view.edits.map((edit, index) => (
            <DiffView key={index} before={edit.before} after={edit.after} />
          ))}
        </div>
      )
    case 'command':
      return (
        <>
          <CodeBlock code={view.command} language="bash" showsHidden />
          {Object.keys(view.rest).length > 0 && <Json value={view.rest} />}
        </>
      )
    default:
      return <Json value={input} />
  }
}

function Json({ value }: { value: unknown }): ReactNode {
  return <CodeBlock code={JSON.stringify(value, null, 2) ?? 'null'} language="json" showsHidden />
}
