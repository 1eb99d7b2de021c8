const first = 500
const longest = 15_000

/** Doubles from half a second to fifteen; up to half of it is chance, so that many tabs do not come back as one. */
export function backoff(attempt: number, random: () => number): number {
  const whole = Math.min(longest, first * 2 ** attempt)
  return whole / 2 + (whole / 2) * random()
}
