import { Fragment, type ReactNode } from 'react'

/** A sentence of a table with elements in it: `{name}` is where the part of that name goes. */
export function RichText({ text, parts }: { text: string; parts: Record<string, ReactNode> }): ReactNode {
  return text.split(/\{(\w+)\}/).map((piece, index) => <Fragment key={index}>{index % 2 === 1 ? parts[piece] : piece}</Fragment>)
}
