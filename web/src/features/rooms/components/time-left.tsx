import { type ReactNode, useEffect, useState } from 'react'
import { duration } from '@/lib/format'

/** Counts down to the moment at which no answer becomes a no. */
export function TimeLeft({ until, className }: { until: string; className?: string }): ReactNode {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  const left = new Date(until).getTime() - now
  return <span className={className}>{left > 0 ? `denied by itself in ${duration(Math.ceil(left / 1000) * 1000)}` : 'time is up'}</span>
}
