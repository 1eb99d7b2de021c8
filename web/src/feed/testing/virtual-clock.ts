import type { Clock } from '../clock'

interface Alarm {
  at: number
  callback: () => void
}

/** A clock that advances only on request and lets promises settle in between. */
export class VirtualClock implements Clock {
  private time = 0
  private alarms: Alarm[] = []

  constructor(readonly random: () => number = () => 0.5) {}

  now(): number {
    return this.time
  }

  after(millis: number, callback: () => void): () => void {
    const alarm = { at: this.time + millis, callback }
    this.alarms.push(alarm)
    return () => {
      this.alarms = this.alarms.filter((other) => other !== alarm)
    }
  }

  sleep(millis: number): Promise<void> {
    return new Promise((resolve) => this.after(millis, resolve))
  }

  async pass(millis: number): Promise<void> {
    const until = this.time + millis
    await settle()
    for (;;) {
      const next = this.alarms.filter((alarm) => alarm.at <= until).sort((a, b) => a.at - b.at)[0]
      if (!next) break
      this.alarms = this.alarms.filter((alarm) => alarm !== next)
      this.time = Math.max(this.time, next.at)
      next.callback()
      await settle()
    }
    this.time = until
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 12; i += 1) await Promise.resolve()
}
