import { type RefObject, useEffect, useLayoutEffect, useState } from 'react'
import { EndKeeper } from './end-keeper'

interface Stick {
  isAtEnd: boolean
  toEnd: () => void
  letGo: () => void
  /** Called for every scroll that is not by the user. */
  wasMoved: () => void
}

/** Keeps a list at its end, as decided by `EndKeeper`. */
export function useStickToEnd(box: RefObject<HTMLElement | null>, isThere: boolean, startsAtEnd: boolean): Stick {
  const [isAtEnd, setIsAtEnd] = useState(startsAtEnd)
  const [keeper] = useState(() => new EndKeeper(startsAtEnd, setIsAtEnd))

  useEffect(() => {
    const element = box.current
    if (!element || !isThere) return
    const judge = (): void => keeper.judge(element)
    // First of all who listen: the list answers with new rows, whose sizes would cloud the judgement.
    element.addEventListener('scroll', judge, { passive: true, capture: true })
    // The window, the composer and side panels change its size without a render of the list.
    const sizes = new ResizeObserver(() => keeper.keep(element))
    sizes.observe(element)
    if (element.firstElementChild) sizes.observe(element.firstElementChild)
    return () => {
      element.removeEventListener('scroll', judge, { capture: true })
      sizes.disconnect()
    }
  }, [box, isThere, keeper])

  // With every render, for every change of size is one: the list renders when something in it was measured.
  useLayoutEffect(() => {
    if (box.current) keeper.keep(box.current)
  })

  return {
    isAtEnd,
    toEnd: () => box.current && keeper.toEnd(box.current),
    letGo: () => keeper.letGo(),
    wasMoved: () => box.current && keeper.wasMoved(box.current),
  }
}
