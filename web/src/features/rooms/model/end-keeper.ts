/** The part of an element that is used. */
export interface ScrollBox {
  scrollTop: number
  readonly scrollHeight: number
  readonly clientHeight: number
}

/** Coming back down, this is near enough to the end to be taken along again. */
const nearEnd = 64

/**
 * Keeps a scrolling box at its end while it grows, unless someone has moved up. A box also moves because something in it
 * was measured, loaded or folded; only a move upwards that no shrinking explains is someone's doing.
 */
export class EndKeeper {
  private top = 0
  private height = 0

  constructor(
    private sticks: boolean,
    private readonly onChange: (sticks: boolean) => void,
  ) {}

  /** To be called whenever the box was scrolled, and before it is kept. */
  judge(box: ScrollBox): void {
    const { scrollTop, scrollHeight, clientHeight } = box
    const distance = scrollHeight - scrollTop - clientHeight
    if (distance <= 2) this.settle(true)
    else if (this.sticks && scrollTop < this.top - 1 && scrollHeight >= this.height) this.settle(false)
    else if (!this.sticks && scrollTop > this.top && distance <= nearEnd) this.settle(true)
    this.remember(box)
  }

  /** To be called whenever something may have changed its size. */
  keep(box: ScrollBox): void {
    this.judge(box)
    if (this.sticks) this.toEnd(box)
  }

  toEnd(box: ScrollBox): void {
    this.settle(true)
    box.scrollTop = box.scrollHeight
    this.remember(box)
  }

  /** A scroll caused by layout, which does not reflect the user's intent. */
  wasMoved(box: ScrollBox): void {
    this.remember(box)
  }

  letGo(): void {
    this.settle(false)
  }

  private remember(box: ScrollBox): void {
    this.top = box.scrollTop
    this.height = box.scrollHeight
  }

  private settle(sticks: boolean): void {
    if (sticks === this.sticks) return
    this.sticks = sticks
    this.onChange(sticks)
  }
}
