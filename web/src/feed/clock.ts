/** Time and chance, so that tests need neither to wait nor to be lucky. */
export interface Clock {
  now(): number
  /** Calls back once; the returned function calls it off. */
  after(millis: number, callback: () => void): () => void
  /** From 0 up to, not including, 1. */
  random(): number
}

export const realClock: Clock = {
  now: () => Date.now(),
  after(millis, callback) {
    const timer = setTimeout(callback, millis)
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
}
