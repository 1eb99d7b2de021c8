import { Check, Copy } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { notify } from '@/lib/notices'
import { IconButton } from './button'
import { t } from '../texts'

export function CopyButton({ text, label = t.copy, className }: { text: () => string; label?: string; className?: string }): ReactNode {
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
      notify(t.theBrowserBlockedCopyingSelectTheText, 'problem')
    }
  }

  return (
    <IconButton label={isDone ? t.copied : label} className={className} onClick={() => void copy()}>
      {isDone ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
    </IconButton>
  )
}
