import { describe, expect, it } from 'vitest'
import { prepared, restored } from './diagram-source'

describe('a diagram', () => {
  it('loses the quotes of its labels, and nothing inside them', () => {
    const text = prepared('graph TD\n  A["Post (once)"] -->|"a | b"| B["x<br/>y & <b>"]')
    expect(text).not.toContain('"')
    expect(text).toMatch(/^graph TD\n {2}A\[Post \S+once\S+\] -->\|a \S+ b\| B\[x y \S+ \S+\]$/)
    expect(restored(text)).toBe('graph TD\n  A[Post (once)] -->|a | b| B[x y &amp; &lt;b&gt;]')
  })

  it('keeps quotes where they are no labels', () => {
    const source = 'classDiagram\n  Room "1" --> "*" Message'
    expect(prepared(source)).toBe(source)
  })

  it('brings no stand-ins of its own', () => {
    expect(restored(prepared('graph TD\n  A[\uE008script\uE009] --> B'))).toBe('graph TD\n  A[script] --> B')
  })

  it('may end its lines with a semicolon, and begin with a remark', () => {
    expect(prepared('%% a remark\nflowchart LR;\n  A --> B;\n')).toBe('%% a remark\nflowchart LR\n  A --> B')
  })
})
