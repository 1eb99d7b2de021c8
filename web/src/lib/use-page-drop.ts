import { useEffect, useRef, useState } from 'react'

/** Takes files that are dropped anywhere on the page. Returns whether some are being held over it. */
export function usePageDrop(onFiles: (files: FileList) => void): boolean {
  const [isOver, setIsOver] = useState(false)
  const take = useRef(onFiles)
  useEffect(() => {
    take.current = onFiles
  })

  useEffect(() => {
    const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') ?? false
    const over = (event: DragEvent): void => {
      if (!hasFiles(event)) return
      // Else the browser would open the file in place of the page.
      event.preventDefault()
      setIsOver(true)
    }
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setIsOver(false)
    }
    const drop = (event: DragEvent): void => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setIsOver(false)
      if (event.dataTransfer) take.current(event.dataTransfer.files)
    }
    const page = document
    page.addEventListener('dragover', over)
    page.addEventListener('dragleave', leave)
    page.addEventListener('drop', drop)
    return () => {
      page.removeEventListener('dragover', over)
      page.removeEventListener('dragleave', leave)
      page.removeEventListener('drop', drop)
    }
  }, [])

  return isOver
}
