import type { Usage } from './api/types'

/** 840 ms, 3.2 s, 1 min 05 s, 2 h 10 min */
export function duration(millis: number): string {
  if (millis < 1000) return `${Math.max(0, Math.round(millis))} ms`
  const seconds = millis / 1000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  const rest = Math.floor(seconds % 60)
  if (minutes < 60) return `${minutes} min ${String(rest).padStart(2, '0')} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** 9:58, 1:02:03 */
export function countdown(millis: number): string {
  const seconds = Math.ceil(millis / 1000)
  const two = (value: number): string => String(value).padStart(2, '0')
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
}

/** 980, 12.4k, 3.1M */
export function count(value: number): string {
  if (value < 1000) return String(value)
  if (value < 1_000_000) return `${trimmed(value / 1000)}k`
  return `${trimmed(value / 1_000_000)}M`
}

function trimmed(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(1).replace(/\.0$/, '')
}

/** Small sums need more digits to be anything but zero. */
export function dollars(value: number): string {
  if (value === 0) return '$0'
  if (value < 0.0001) return '< $0.0001'
  return `$${value.toFixed(value < 0.01 ? 4 : value < 1 ? 3 : 2)}`
}

/** 94 %; never 100 % while one failed. */
export function percent(rate: number): string {
  const rounded = Math.round(rate * 100)
  return `${rounded === 100 && rate < 1 ? 99 : rounded} %`
}

/** The sum of what has a price, and whether there was more. */
export function costText({ cost, unpriced }: { cost?: number | null; unpriced: number }): string {
  if (unpriced === 0) return dollars(cost ?? 0)
  return cost ? `${dollars(cost)} + unknown` : 'unknown'
}

export function tokens(usage: Usage): number {
  return usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
}

export function bytes(length: number): string {
  if (length < 1000) return `${length} B`
  if (length < 1_000_000) return `${trimmed(length / 1000)} kB`
  return `${trimmed(length / 1_000_000)} MB`
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' })
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

const longDay = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long' })
const longDayAndYear = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' })

/** Today, Yesterday, Monday, November 16 */
export function dayTitle(iso: string, now: Date = new Date()): string {
  const date = new Date(iso)
  const isDaysAgo = (days: number): boolean => date.toDateString() === new Date(now.getFullYear(), now.getMonth(), now.getDate() - days).toDateString()
  if (isDaysAgo(0)) return 'Today'
  if (isDaysAgo(1)) return 'Yesterday'
  return (date.getFullYear() === now.getFullYear() ? longDay : longDayAndYear).format(date)
}

export function timeOfDay(iso: string): string {
  return clock.format(new Date(iso))
}

export function fullTime(iso: string): string {
  return exact.format(new Date(iso))
}

/** The time for today, the day for anything before. */
export function shortTime(iso: string, now: Date = new Date()): string {
  const date = new Date(iso)
  return date.toDateString() === now.toDateString() ? clock.format(date) : day.format(date)
}

/** As in a sentence: `at 14:05`, or `on Tue, Dec 1 at 01:00`. */
export function moment(iso: string, now: Date = new Date()): string {
  const date = new Date(iso)
  const time = `at ${clock.format(date)}`
  return date.toDateString() === now.toDateString() ? time : `on ${day.format(date)} ${time}`
}

/** 1 042, with a thin space: journal positions are read aloud and compared. */
export function position(seq: number): string {
  return String(seq).replace(/\B(?=(\d{3})+$)/g, '\u2009')
}

/** Error messages of programs often start in lower case and end without a period. */
export function sentence(text: string): string {
  const capitalized = text.charAt(0).toUpperCase() + text.slice(1)
  return capitalized === '' || /[.!?:…}]$/.test(capitalized) ? capitalized : `${capitalized}.`
}
