import { Check, Copy } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { notify } from '@/lib/notices'
import { IconButton } from './button'

export function CopyButton({ text, label = 'Copy', className }: { text: () => string; label?: string; className?: string }): ReactNode {
  const [isDone, setIsDone] = useState(false)

  useEffect(() => {
    if (!isDone) return
    const timer = setTimeout(() => setIsDone(false), 1500)
    return () => clearTimeout(timer)
  }, [isDone])

  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text())
      setIsDone(true)
    } catch {
      notify('The browser blocked copying. Select the text and copy it yourself.', 'problem')
    }
  }

  return (
    <IconButton label={isDone ? 'Copied' : label} className={className} onClick={() => void copy()}>
      {isDone ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
    </IconButton>
  )
}
