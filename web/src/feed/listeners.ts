/** Who wants to know that something changed; in the form that React's external stores ask for. */
export class Listeners {
  private readonly all = new Set<() => void>()

  readonly subscribe = (listener: () => void): (() => void) => {
    this.all.add(listener)
    return () => this.all.delete(listener)
  }

  tell(): void {
    for (const listener of this.all) listener()
  }
}
