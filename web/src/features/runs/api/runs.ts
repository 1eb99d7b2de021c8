import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { ApiError, answerOf, api } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { Message, Run, NamedRun, Stopped, Timeline } from '@/lib/api/types'
import { type RunFilter, isEnded } from '../model/run-filter'

export interface RunPage {
  runs: NamedRun[]
  next?: string | null
}

const pageLength = 50

/** One page. Pages with active runs are refetched often, others now and then. */
export function runsQuery({ status, agent, room, before }: Omit<RunFilter, 'since'>) {
  return queryOptions({
    queryKey: queryKeys.runs.list(status ?? '', agent ?? '', room ?? '', before ?? ''),
    queryFn: (): Promise<RunPage> =>
      answerOf(api.GET('/api/runs', { params: { query: { status, agent, room, before, limit: pageLength } } })),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.runs.some((run) => !isEnded(run.status)) ? 1500 : 5000),
  })
}

const soon = 1000

export function runQuery(id: string) {
  return queryOptions({
    queryKey: queryKeys.runs.one(id),
    queryFn: (): Promise<Run> => answerOf(api.GET('/api/runs/{id}', { params: { path: { id } } })),
    refetchInterval: ({ state }) => (state.data && !isEnded(state.data.status) ? soon : false),
  })
}

export function timelineQuery(id: string) {
  return queryOptions({
    queryKey: queryKeys.runs.timeline(id),
    queryFn: (): Promise<Timeline> => answerOf(api.GET('/api/runs/{id}/timeline', { params: { path: { id } } })),
    refetchInterval: ({ state }) => (state.data && !state.data.ended_at ? soon : false),
  })
}

const lookBack = 20

/** The message that a run answers, or nothing where it cannot be found any more. */
export function questionQuery(run: Pick<Run, 'room_id' | 'message_id' | 'queued_seq'>) {
  return queryOptions({
    queryKey: queryKeys.runs.question(run.message_id),
    staleTime: Infinity,
    queryFn: async (): Promise<Message | null> => {
      const params = { path: { id: run.room_id }, query: { before: run.queued_seq, limit: lookBack } }
      try {
        const { messages } = await answerOf(api.GET('/api/rooms/{id}/messages', { params }))
        return messages.find((message) => message.id === run.message_id) ?? null
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null
        throw error
      }
    },
  })
}

/** Comes back when the run has really stopped. */
export function stopRun(id: string): Promise<Stopped> {
  return answerOf(api.POST('/api/runs/{id}/cancel', { params: { path: { id } } }))
}
