import { useBlocker } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'

export interface Leaving {
  leave: () => void
  stay: () => void
}

interface LeaveGuard {
  /** Somebody is about to leave: what to do about it, or null. */
  leaving: Leaving | null
  /** What is typed is safe by now; the next way out is free. */
  letGo: () => void
}

/** Warns before leaving a page with unsaved changes; switching tabs within the page is not leaving. */
export function useLeaveGuard(isDirty: boolean): LeaveGuard {
  const isFree = useRef(false)
  useEffect(() => {
    if (isDirty) isFree.current = false
  }, [isDirty])
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => isDirty && !isFree.current && current.pathname !== next.pathname,
    enableBeforeUnload: () => isDirty && !isFree.current,
    withResolver: true,
  })
  return {
    leaving: blocker.status === 'blocked' ? { leave: blocker.proceed, stay: blocker.reset } : null,
    letGo: () => {
      isFree.current = true
    },
  }
}
