import { useEffect, useState } from 'react'

/** The time, kept moving while someone needs it to. */
export function useNow(isMoving: boolean, every = 500): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!isMoving) return
    const timer = setInterval(() => setNow(Date.now()), every)
    return () => clearInterval(timer)
  }, [isMoving, every])
  return now
}
