import { describe, expect, it } from 'vitest'
import { formulaIn, markFormulas } from './math-spans'

const inline = (tex: string): string => `\`\uE000${tex}\``
const display = (tex: string): string => `\`\uE001${tex}\``

describe('formulas in Markdown', () => {
  it.each([
    ['so \\(x^2\\) holds', `so ${inline('x^2')} holds`],
    ['\\[\\int_0^1 x\\]', display('\\int_0^1 x')],
    ['$$\na + b\n$$', display('a + b')],
    ['where $n \\ge 1$ and $m$.', `where ${inline('n \\ge 1')} and ${inline('m')}.`],
  ])('%j', (source, marked) => expect(markFormulas(source)).toBe(marked))

  it.each([
    'It costs $5 and then $10.',
    'from $5 to 7$ a month',
    'an escaped \\$x\\$ sign',
    'code `$x$` and ``a ` $y$``',
    '- item\n  ```\n  $x$\n  ```\n',
    'not closed: \\(x and $$y',
    'empty \\(\\) and $$$$',
  ])('leaves %j as it is', (source) => expect(markFormulas(source)).toBe(source))

  it('are recognized behind their mark', () => {
    expect(formulaIn('\uE001a+b')).toEqual({ tex: 'a+b', isDisplay: true })
    expect(formulaIn('a+b')).toBeNull()
  })
})
