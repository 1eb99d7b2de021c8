import type { ReactNode } from 'react'

/** Advice of the server sets commands in backticks. */
export function WithCode({ text }: { text: string }): ReactNode {
  return text.split('`').map((piece, index) => (index % 2 === 1 ? <code key={index}>{piece}</code> : piece))
}
