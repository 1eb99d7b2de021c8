import { useEffect } from 'react'
import { commandStore, isPressed } from '@/lib/commands'

/** Runs the command whose keys were pressed. While someone types, only combinations count. */
export function useShortcuts(): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing) return
      const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select, [contenteditable]')
      const isInDialog = document.querySelector('dialog[open]') !== null
      const command = commandStore.get().find(({ keys }) => keys !== undefined && isPressed(event, keys))
      if (!command?.keys || isInDialog) return
      if (isTyping && !/^(mod|alt)\+/.test(command.keys)) return
      event.preventDefault()
      command.run()
    }
    document.addEventListener('keydown', pressed)
    return () => document.removeEventListener('keydown', pressed)
  }, [])
}
