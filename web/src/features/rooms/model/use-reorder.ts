import { type DragEvent, type RefObject, useEffect, useRef, useState } from 'react'
import { moved } from './reorder'

interface ItemProps {
  'data-item': string
  'data-over': true | undefined
  draggable: boolean
  onDragStart: (event: DragEvent) => void
  onDragOver: (event: DragEvent) => void
  onDragEnd: () => void
  onDrop: (event: DragEvent) => void
}

interface Reorder {
  list: RefObject<HTMLOListElement | null>
  /** Moves an item by one of its buttons. */
  press: (id: string, to: number) => void
  /** Makes an item one that is dragged and dropped on; `text` is what is dragged out of the page. */
  item: (id: string, text: string) => ItemProps
}

/** Reorders a list by buttons and by dragging. `order` are the ids that can be moved. */
export function useReorder(order: readonly string[], isBusy: boolean, onReorder: (order: string[]) => void): Reorder {
  const list = useRef<HTMLOListElement>(null)
  const pressed = useRef<string | null>(null)
  const [dragged, setDragged] = useState<string | null>(null)
  const [over, setOver] = useState<string | null>(null)

  const move = (id: string, to: number): void => {
    const from = order.indexOf(id)
    if (from < 0 || to < 0 || to >= order.length || from === to) return
    onReorder(moved(order, from, to))
  }

  // The button that was pressed goes with its item, and the focus with it.
  const joined = order.join()
  useEffect(() => {
    if (pressed.current === null || isBusy) return
    list.current?.querySelector<HTMLElement>(`[data-item="${pressed.current}"] button:enabled`)?.focus()
    pressed.current = null
  }, [joined, isBusy])

  const drop = (): void => {
    setDragged(null)
    setOver(null)
  }

  return {
    list,
    press: (id, to) => {
      pressed.current = id
      move(id, to)
    },
    item: (id, text) => {
      const place = order.indexOf(id)
      return {
        'data-item': id,
        'data-over': (over === id && dragged !== id) || undefined,
        draggable: place >= 0 && order.length > 1,
        onDragStart: (event) => {
          event.dataTransfer.effectAllowed = 'move'
          event.dataTransfer.setData('text/plain', text)
          setDragged(id)
        },
        onDragOver: (event) => {
          if (dragged === null || place < 0) return
          event.preventDefault()
          setOver(id)
        },
        onDragEnd: drop,
        onDrop: (event) => {
          if (dragged === null || place < 0) return
          event.preventDefault()
          move(dragged, place)
          drop()
        },
      }
    },
  }
}
