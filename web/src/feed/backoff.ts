const first = 500
/** A server that is back is found within this time. */
const longest = 3000

/** Doubles from half a second to three; up to half of it is chance, so that many tabs do not come back as one. */
export function backoff(attempt: number, random: () => number): number {
  const whole = Math.min(longest, first * 2 ** attempt)
  return whole / 2 + (whole / 2) * random()
}
