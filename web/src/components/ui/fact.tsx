import type { ReactNode } from 'react'

interface FactProps {
  name: string
  /** Shown when the pointer rests on the value. */
  title?: string
  children: ReactNode
}

/** One entry of a description list. */
export function Fact({ name, title, children }: FactProps): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd title={title}>{children}</dd>
    </div>
  )
}
