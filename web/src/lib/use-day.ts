import { useEffect, useState } from 'react'

/** The present day; at midnight it is the next one. */
export function useDay(): Date {
  const [day, setDay] = useState(() => new Date())
  useEffect(() => {
    const next = new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1)
    const timer = setTimeout(() => setDay(new Date()), next.getTime() - Date.now() + 1000)
    return () => clearTimeout(timer)
  }, [day])
  return day
}
