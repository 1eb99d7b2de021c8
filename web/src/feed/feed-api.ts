import type { EventPage, History, NewMessage, Posted, Run } from '@/lib/api/types'
import { answerOf, api } from '@/lib/api/client'

/** The requests that the feed makes; tests bring their own. */
export interface FeedApi {
  history(room: string, limit: number, before?: number, since?: number): Promise<History>
  events(room: string, after: string, limit: number): Promise<EventPage>
  runs(filter: { room_id: string; limit: number }): Promise<Run[]>
  post(room: string, message: NewMessage, key: string): Promise<Posted>
}

export const httpApi: FeedApi = {
  history: (id, limit, before, since) =>
    answerOf(api.GET('/api/rooms/{id}/messages', { params: { path: { id }, query: { limit, before, since: since?.toString() } } })),
  // The same address also serves a stream of text, which is not asked for here.
  events: (id, after, limit) =>
    answerOf(api.GET('/api/rooms/{id}/events', { params: { path: { id }, query: { after, limit } } })) as Promise<EventPage>,
  runs: async (query) => (await answerOf(api.GET('/api/runs', { params: { query } }))).runs,
  post: (id, body, key) =>
    answerOf(
      api.POST('/api/rooms/{id}/messages', {
        params: { path: { id }, header: { 'Idempotency-Key': key } },
        body,
        // A page that is reloaded or closed right now still sends it; browsers do that for what is small.
        keepalive: body.text.length < 16_000,
      }),
    ),
}
