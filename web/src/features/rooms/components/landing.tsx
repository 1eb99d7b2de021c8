import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { PageBar } from '@/components/layout/page-bar'
import pageNote from '@/components/layout/page-note.module.css'
import { Button } from '@/components/ui/button'
import { explain } from '@/lib/api/client'
import { firstRoom } from '../model/first-room'
import { t } from '../texts'
import styles from './room-page.module.css'

/** Redirects to the last visited room, or creates the first one. */
export function Landing(): ReactNode {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const [problem, setProblem] = useState<string | null>(null)
  const [attempt, setAttempt] = useState(0)
  const begun = useRef(-1)
  const isHere = useRef(false)

  useEffect(() => {
    isHere.current = true
    return () => {
      isHere.current = false
    }
  }, [])

  useEffect(() => {
    if (begun.current === attempt) return
    begun.current = attempt
    firstRoom(queries)
      .then(async (room) => {
        // No redirect if the user has navigated away in the meantime.
        if (isHere.current) await navigate({ to: '/rooms/$roomId', params: { roomId: room.id }, replace: true })
      })
      .catch((error: unknown) => setProblem(explain(error)))
  }, [attempt, navigate, queries])

  return (
    <>
      <PageBar> </PageBar>
      {problem === null ? (
        <p className={styles.loading} role="status">
          {t.loading}
        </p>
      ) : (
        <div className={pageNote.narrow} role="alert">
          <h1>{t.couldNotOpenARoom}</h1>
          <p className={pageNote.detail}>{problem}</p>
          <Button
            look="primary"
            onClick={() => {
              setProblem(null)
              setAttempt(attempt + 1)
            }}
          >
            {t.tryAgain}
          </Button>
        </div>
      )}
    </>
  )
}
