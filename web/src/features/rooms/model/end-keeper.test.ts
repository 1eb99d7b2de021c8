import { expect, it } from 'vitest'
import { EndKeeper } from './end-keeper'

class Box {
  clientHeight = 100
  private top = 0
  constructor(public scrollHeight: number) {}
  get scrollTop(): number {
    return Math.min(this.top, this.scrollHeight - this.clientHeight)
  }
  set scrollTop(value: number) {
    this.top = Math.max(0, Math.min(value, this.scrollHeight - this.clientHeight))
  }
}

function setting(): { box: Box; keeper: EndKeeper; said: boolean[] } {
  const said: boolean[] = []
  const keeper = new EndKeeper(true, (sticks) => said.push(sticks))
  const box = new Box(500)
  keeper.keep(box)
  return { box, keeper, said }
}

it('stays at the end while the box grows, shrinks and is resized', () => {
  const { box, keeper, said } = setting()
  for (const height of [520, 900, 700, 1500]) {
    box.scrollHeight = height
    keeper.keep(box)
    expect(box.scrollTop).toBe(height - 100)
  }
  box.clientHeight = 60
  keeper.keep(box)
  expect(box.scrollTop).toBe(1440)
  expect(said).toEqual([])
})

it('lets go when someone moves up, however little, and even if it hears of growth first', () => {
  const { box, keeper, said } = setting()
  box.scrollTop -= 10
  box.scrollHeight += 50
  keeper.keep(box)
  expect(box.scrollTop).toBe(390)
  expect(said).toEqual([false])
})

it('is not fooled by what was measured smaller above', () => {
  const { box, keeper, said } = setting()
  box.scrollHeight -= 80
  box.scrollTop -= 90
  keeper.keep(box)
  expect(box.scrollTop).toBe(320)
  expect(said).toEqual([])
})

it('sticks again when someone comes back down', () => {
  const { box, keeper, said } = setting()
  box.scrollTop = 100
  keeper.judge(box)
  box.scrollTop = 350
  keeper.judge(box)
  expect(said).toEqual([false, true])
  box.scrollHeight = 800
  keeper.keep(box)
  expect(box.scrollTop).toBe(700)
})

it('does not take the layout for a hand', () => {
  const { box, keeper, said } = setting()
  box.scrollTop = 0
  keeper.wasMoved(box)
  keeper.judge(box)
  keeper.keep(box)
  expect(box.scrollTop).toBe(400)
  expect(said).toEqual([])
})
