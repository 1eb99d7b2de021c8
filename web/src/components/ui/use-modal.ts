import { type RefObject, useLayoutEffect, useRef } from 'react'

/** For a dialog that is open for as long as it is there, and gives the focus back to where it was. */
export function useModal(): RefObject<HTMLDialogElement | null> {
  const ref = useRef<HTMLDialogElement>(null)

  useLayoutEffect(() => {
    const dialog = ref.current
    const origin = document.activeElement
    dialog?.showModal()
    return () => {
      // Here it is still in the page; of one that is taken out while open, the focus is lost.
      dialog?.close()
      if (!(origin instanceof HTMLElement) || origin !== document.activeElement) return
      // Chromium gives a field the focus without the caret: what is typed then goes nowhere.
      origin.blur()
      origin.focus({ preventScroll: true })
    }
  }, [])

  return ref
}
