import { useEffect } from 'react'
import { useRoom } from '@/feed/use-feed'
import { markRead } from './read-marks'

/** What is on the screen of someone who looks at it has been read. */
export function useReadMark(roomId: string, isAtEnd: boolean): void {
  const last = useRoom(roomId, (view) => view.state?.messages.get(view.state.order.at(-1) ?? '')?.seq ?? 0)
  useEffect(() => {
    const mark = (): void => {
      if (isAtEnd && !document.hidden) markRead(roomId, last)
    }
    mark()
    document.addEventListener('visibilitychange', mark)
    return () => document.removeEventListener('visibilitychange', mark)
  }, [roomId, isAtEnd, last])
}
