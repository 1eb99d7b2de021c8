import { elementScroll, useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, type ReactNode, type RefObject, useCallback, useEffect, useMemo, useRef } from 'react'
import { pageAround, skippedPage } from '@/feed/pages'
import { type Row, rowsOf } from '@/feed/rows'
import type { Message } from '@/feed/state'
import { useFeed, useRoom } from '@/feed/use-feed'
import { newDayAt } from '../model/days'
import { useReadMark } from '../model/use-read-mark'
import { useStickToEnd } from '../model/use-stick-to-end'
import { ConversationRow } from './conversation-row'
import { ConversationStart } from './conversation-start'
import styles from './conversation.module.css'
import { DayLine } from './day-line'
import { NewMessages } from './new-messages'
import { t } from '../texts'

/** Rows from the top at which what came before them is fetched. */
const earlyRows = 4

interface ConversationProps {
  roomId: string
  /** The journal number of the message that a link pointed to. */
  target: number | null
  empty: ReactNode
}

export function Conversation({ roomId, target, empty }: ConversationProps): ReactNode {
  const rows = useRows(roomId)
  const feed = useFeed()
  const scroller = useRef<HTMLDivElement>(null)
  const { isAtEnd, toEnd, letGo, wasMoved } = useStickToEnd(scroller, rows.length > 0, target === null)
  const seqOfRow = useSeqOfRow(roomId, rows)

  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 110,
    getItemKey: useCallback((index: number) => rows[index]?.key ?? index, [rows]),
    overscan: 8,
    // What is loaded above must not move what is being read.
    anchorTo: 'end',
    scrollToFn: (offset, options, instance) => {
      elementScroll(offset, options, instance)
      wasMoved()
    },
    paddingStart: 40,
    paddingEnd: 24,
  })

  const messages = feed.room(roomId).snapshot().state?.messages ?? noMessages

  const reached = useTarget(roomId, target, rows, seqOfRow, (index) => {
    letGo()
    virtualizer.scrollToIndex(index, { align: 'start' })
  })
  useReadMark(roomId, isAtEnd)

  const items = virtualizer.getVirtualItems()
  const firstIndex = items[0]?.index ?? 0
  useEffect(() => {
    // On the way to a message that a link named, the pages between are not wanted.
    if (target !== null && reached.current !== target) return
    if (firstIndex <= earlyRows && rows.length > 0) void feed.room(roomId).loadOlder().catch(() => {})
  }, [feed, roomId, firstIndex, rows.length, target, reached])

  // The browser would glide there, and every move of ours on the way would shift where it comes to rest.
  const jump = (event: KeyboardEvent): void => {
    if (event.target !== scroller.current || event.altKey || event.shiftKey) return
    if (event.key === 'Home') {
      letGo()
      virtualizer.scrollToOffset(0)
    } else if (event.key === 'End') toEnd()
    else return
    event.preventDefault()
  }

  if (rows.length === 0) return <div className={styles.empty}>{empty}</div>
  return (
    <div className={styles.frame}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- Home and End belong to what scrolls */}
      <div
        ref={scroller}
        className={styles.scroller}
        role="log"
        aria-label={t.conversation}
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard must reach it
        tabIndex={0}
        onKeyDown={jump}
      >
        <div className={styles.sheet} style={{ height: virtualizer.getTotalSize() }}>
          <ConversationStart roomId={roomId} />
          {items.map((item) => {
            const row = rows[item.index]
            if (!row) return null
            const before = rows[item.index - 1]
            const newDay = newDayAt(rows, item.index, messages)
            return (
              <div
                key={item.key}
                ref={virtualizer.measureElement}
                data-index={item.index}
                className={styles.row}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                {newDay !== null && <DayLine time={newDay} />}
                <ConversationRow
                  roomId={roomId}
                  row={row}
                  previousId={before?.kind === 'message' ? before.id : before?.kind === 'together' ? (before.ids.at(-1) ?? null) : null}
                  target={target}
                />
              </div>
            )
          })}
        </div>
      </div>
      {!isAtEnd && <NewMessages roomId={roomId} onJump={toEnd} />}
    </div>
  )
}

const noMessages: ReadonlyMap<string, Message> = new Map()

function useRows(roomId: string): Row[] {
  const order = useRoom(roomId, (view) => view.state?.order)
  const runs = useRoom(roomId, (view) => view.state?.runs)
  const pending = useRoom(roomId, (view) => view.state?.pending)
  const skipped = useRoom(roomId, (view) => view.state?.skipped ?? null)
  const room = useFeed().room(roomId)
  // Reads the current messages: texts do not change the rows, and the order decides which rows exist.
  return useMemo(() => {
    const { state } = room.snapshot()
    return order && runs && pending && state ? rowsOf({ ...state, order, runs, pending, skipped }) : []
  }, [room, order, runs, pending, skipped])
}

function useSeqOfRow(roomId: string, rows: Row[]): (index: number) => number | null {
  const room = useFeed().room(roomId)
  return (index) => {
    const row = rows[index]
    // Of answers side by side the last one: a link to any of them leads to this row.
    const id = row?.kind === 'message' ? row.id : row?.kind === 'together' ? row.ids.at(-1) : undefined
    return id === undefined ? null : (room.snapshot().state?.messages.get(id)?.seq ?? null)
  }
}

/** Scrolls once to the message that a link named, after its page has been loaded. Returns which one it has got to. */
function useTarget(roomId: string, target: number | null, rows: Row[], seqOf: (index: number) => number | null, scrollTo: (index: number) => void): RefObject<number | null> {
  const feed = useFeed()
  const done = useRef<number | null>(null)
  useEffect(() => {
    const { state } = feed.room(roomId).snapshot()
    if (target === null || done.current === target || !state || rows.length === 0) return
    if (state.loadedFrom > target) {
      void feed.room(roomId).loadPage(pageAround(target)).catch(() => {})
      return
    }
    if (state.skipped && target > state.skipped.after && target < state.skipped.before) {
      void feed.room(roomId).loadPage(skippedPage).catch(() => {})
      return
    }
    done.current = target
    const index = rows.findIndex((_, at) => (seqOf(at) ?? 0) >= target)
    // After the list has put itself to its end.
    if (index >= 0) requestAnimationFrame(() => scrollTo(index))
  })
  return done
}
