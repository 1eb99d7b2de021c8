/** Callbacks for changes, in the form that React's external stores expect. */
export class Listeners {
  private readonly all = new Set<() => void>()

  readonly subscribe = (listener: () => void): (() => void) => {
    this.all.add(listener)
    return () => this.all.delete(listener)
  }

  notify(): void {
    for (const listener of this.all) listener()
  }
}
