import type { Usage } from './api/types'
import { locale } from './i18n'
import { t } from './texts'

type NumberForm = { least: number; most: number }

const numberFormats = new Map<string, Intl.NumberFormat>()

/** A formatter is slow to make and is needed for every figure of a page. */
function numberFormat(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = `${locale()} ${JSON.stringify(options)}`
  const known = numberFormats.get(key) ?? new Intl.NumberFormat(locale(), options)
  numberFormats.set(key, known)
  return known
}

function number(value: number, { least, most }: NumberForm): string {
  return numberFormat({ minimumFractionDigits: least, maximumFractionDigits: most, useGrouping: false }).format(value)
}

/** 840 ms, 3.2 s, 1 min 05 s, 2 h 10 min */
export function duration(millis: number): string {
  if (millis < 1000) return `${Math.max(0, Math.round(millis))} ms`
  const seconds = millis / 1000
  if (seconds < 60) return `${number(seconds, { least: 1, most: 1 })} s`
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
  if (value < 1_000_000) return `${short(value / 1000)}k`
  return `${short(value / 1_000_000)}M`
}

function short(value: number): string {
  return number(value, { least: 0, most: value >= 100 ? 0 : 1 })
}

/** Small sums need more digits to be anything but zero. */
export function dollars(value: number): string {
  if (value > 0 && value < 0.0001) return `< ${money(0.0001, 4)}`
  return money(value, value === 0 ? 0 : value < 0.01 ? 4 : value < 1 ? 3 : 2)
}

function money(value: number, digits: number): string {
  const options = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol', minimumFractionDigits: digits, maximumFractionDigits: digits } as const
  return numberFormat(options).format(value)
}

/** 94%; never 100% while one failed. */
export function percent(rate: number): string {
  const rounded = Math.round(rate * 100)
  return numberFormat({ style: 'percent' }).format((rounded === 100 && rate < 1 ? 99 : rounded) / 100)
}

/** The sum of what has a price, and whether there was more. */
export function costText({ cost, unpriced }: { cost?: number | null; unpriced: number }): string {
  if (unpriced === 0) return dollars(cost ?? 0)
  return cost ? t.andUnknown(dollars(cost)) : t.unknown
}

export function tokens(usage: Usage): number {
  return usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
}

export function bytes(length: number): string {
  if (length < 1000) return `${length} B`
  if (length < 1_000_000) return `${short(length / 1000)} kB`
  return `${short(length / 1_000_000)} MB`
}

const forms = {
  clock: { hour: '2-digit', minute: '2-digit' },
  day: { weekday: 'short', day: 'numeric', month: 'short' },
  exact: { dateStyle: 'medium', timeStyle: 'medium' },
  longDay: { weekday: 'long', day: 'numeric', month: 'long' },
  longDayAndYear: { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' },
  month: { month: 'long', year: 'numeric' },
  hourOfDay: { hour: 'numeric' },
  utcDay: { day: 'numeric', month: 'short', timeZone: 'UTC' },
  utcFullDay: { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' },
  dayAndHour: { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>

const dateFormats = new Map<string, Intl.DateTimeFormat>()

/** A date as people of the chosen language write it. */
export function formatDate(date: Date, form: keyof typeof forms): string {
  const key = `${locale()} ${form}`
  const known = dateFormats.get(key) ?? new Intl.DateTimeFormat(locale(), forms[form])
  dateFormats.set(key, known)
  return known.format(date)
}

/** Today, Yesterday, Monday, November 16 */
export function dayTitle(iso: string, now: Date = new Date()): string {
  const date = new Date(iso)
  const isDaysAgo = (days: number): boolean => date.toDateString() === new Date(now.getFullYear(), now.getMonth(), now.getDate() - days).toDateString()
  if (isDaysAgo(0)) return t.today
  if (isDaysAgo(1)) return t.yesterday
  return formatDate(date, date.getFullYear() === now.getFullYear() ? 'longDay' : 'longDayAndYear')
}

export function timeOfDay(iso: string): string {
  return formatDate(new Date(iso), 'clock')
}

export function fullTime(iso: string): string {
  return formatDate(new Date(iso), 'exact')
}

/** The time for today, the day for anything before. */
export function shortTime(iso: string, now: Date = new Date()): string {
  const date = new Date(iso)
  return date.toDateString() === now.toDateString() ? formatDate(date, 'clock') : formatDate(date, 'day')
}

/** As in a sentence: `at 14:05`, or `on Tue, Dec 1 at 01:00`. */
export function moment(iso: string, now: Date = new Date()): string {
  const date = new Date(iso)
  const time = formatDate(date, 'clock')
  return date.toDateString() === now.toDateString() ? t.atTime(time) : t.onDayAtTime(formatDate(date, 'day'), time)
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
