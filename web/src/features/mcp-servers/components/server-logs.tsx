import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { explain } from '@/lib/api/client'
import { fullTime, timeOfDay } from '@/lib/format'
import { logsQuery } from '../api/mcp-api'
import { t } from '../texts'
import styles from './mcp-server-page.module.css'

/** The source of a line. */
const sources: Readonly<Record<string, string>> = { get server() { return t.itsLog }, get stdout() { return t.itsOutput }, manager: 'Greenroom' }

export function ServerLogs({ name }: { name: string }): ReactNode {
  const { data, error } = useQuery(logsQuery(name))
  if (error && !data) {
    return (
      <p className={styles.problem} role="alert">
        {explain(error)}
      </p>
    )
  }
  if (!data) return <p role="status">{t.loading}</p>
  if (data.lines.length === 0 && data.stderr === '') return <p className={styles.note}>{t.noOutputSinceThisServerWasStarted}</p>
  return (
    <>
      {data.lines.length > 0 && (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard must reach it
        <div className={styles.log} role="region" aria-label={t.log} tabIndex={0}>
          <ul>
            {data.lines.map((line, index) => (
              <li key={index}>
                <time dateTime={line.at} title={fullTime(line.at)}>
                  {timeOfDay(line.at)}
                </time>
                <span>{sources[line.source] ?? line.source}</span>
                {line.text}
              </li>
            ))}
          </ul>
        </div>
      )}
      {data.stderr !== '' && (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <pre className={styles.output} role="region" aria-label={t.errorOutput} tabIndex={0}>
          {data.stderr}
        </pre>
      )}
    </>
  )
}
