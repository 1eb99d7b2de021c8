import type { Event, EventEnvelope } from '@/lib/api/types'

/** An event of a type that this page knows. */
export type KnownEvent = Event
export type KnownType = KnownEvent['type']

/** The data of each event type. */
export type EventData = { [E in KnownEvent as E['type']]: E['data'] }

export type Decision = EventData['approval_resolved']['decision']

/** An event from the wire. A newer server may send types that this page does not know; they are passed over. */
export type RoomEvent = EventEnvelope & { type: string; data: unknown }
