import { useEffect, useState } from 'react'

const pauseMs = 200

/** A text once nothing has been typed for a moment. */
export function useLaterText(text: string): string {
  const [later, setLater] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setLater(text), pauseMs)
    return () => clearTimeout(timer)
  }, [text])
  return later
}
