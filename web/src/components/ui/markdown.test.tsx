// @vitest-environment jsdom
import { cleanup, render } from '@testing-library/react'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Markdown } from './markdown'

// There are no workers here; code without colours is code all the same.
vi.mock('@/lib/highlight', () => ({ highlight: () => Promise.resolve(null) }))

afterEach(cleanup)

const text = `# Title

A paragraph with **weight**, \`code\` and a [link][ref].

1. one

   more of one
2. two

| a | b |
|---|--:|
| 1 | 2 |

\`\`\`ts
const a = 1

const b = 2
\`\`\`

- [x] done
- [ ] open

> quoted

[ref]: https://example.org

The end.`

describe('Markdown', () => {
  it('looks the same whether it came at once or letter by letter', () => {
    const whole = render(<Markdown text={text} />).container.innerHTML
    cleanup()
    const growing = render(<Markdown text="" isGrowing />)
    for (let length = 1; length <= text.length; length += 1) growing.rerender(<Markdown text={text.slice(0, length)} isGrowing />)
    growing.rerender(<Markdown text={text} />)
    expect(growing.container.innerHTML).toBe(whole)
    expect(growing.container.querySelector('a')?.href).toBe('https://example.org/')
    expect(growing.container.querySelectorAll('ol > li')).toHaveLength(2)
  })

  it('leaves the pieces before the last alone while it grows', () => {
    const growing = render(<Markdown text={'First.\n\nSecond'} isGrowing />)
    const first = growing.container.querySelector('p')
    growing.rerender(<Markdown text={'First.\n\nSecond grows.\n\nThird'} isGrowing />)
    expect(growing.container.querySelector('p')).toBe(first)
    expect(growing.container.querySelectorAll('p')).toHaveLength(3)
  })

  it('shows pictures as links and HTML as nothing that could run', () => {
    const { container } = render(<Markdown text={'![cat](https://example.org/cat.png)\n\n<img src=x onerror=alert(1)>\n\n[x](javascript:alert(1))'} />)
    expect(container.querySelector('img')).toBeNull()
    expect(container.querySelector('a')?.textContent).toBe('cat')
    expect(container.innerHTML).not.toContain('href="javascript')
  })

  it.each([
    '[Open the report](/api/execute/agent/1?message=hi)',
    '[Open the report](/./api/execute/agent/1)',
    '[Open the report](\\\\api/execute/agent/1)',
    '[Open the report](/%61pi/execute/agent/1)',
    '[Open the report](/API/execute/agent/1)',
    '[Open the report](x/../../../api/execute/agent/1)',
    `[Open the report](${location.origin}/api/execute/agent/1)`,
    `[Open the report](//${location.host}/api/execute/agent/1)`,
    '[Open the report][report]\n\n[report]: /api/execute/agent/1',
    '![Open the report](/api/execute/agent/1)',
    'Open the report[^1].\n\n[^1]: Open [the report](/api/execute/agent/1).',
    `Open the report: ${location.origin}/api/execute/agent/1?message=hi`,
    '[Open the report](/sign-in#code=theirs)',
  ])('m4_links_to_our_own_endpoints_are_text: %s', (said) => {
    const { container } = render(<Markdown text={said} />)
    expect(container.textContent).toContain('Open the report')
    const addresses = [...container.querySelectorAll('[href]')].map((link) => link.getAttribute('href'))
    expect(addresses.filter((address) => !address?.startsWith('#'))).toEqual([])
  })

  it('leaves other links alone', () => {
    const { container } = render(<Markdown text={'[a room](/rooms/1) [elsewhere](https://example.org/api) [below](#note)'} />)
    expect([...container.querySelectorAll('a')].map((link) => link.getAttribute('href'))).toEqual(['/rooms/1', 'https://example.org/api', '#note'])
  })

  it('loses no word to what looks like HTML', () => {
    const said = 'Use Vec<T> or <b>bold</b>.\n\n<div>\na block\n</div>\n\n<!-- a comment -->\n\n- in <T> a list'
    const { container } = render(<Markdown text={said} />)
    for (const piece of ['Vec<T>', '<b>bold</b>', '<div>', 'a block', '<!-- a comment -->', 'in <T> a list']) {
      expect(container.textContent).toContain(piece)
    }
    expect(container.querySelector('b')).toBeNull()
  })

  it('keeps footnotes with their marks', () => {
    const { container } = render(<Markdown text={'Text[^1].\n\n[^1]: The note.'} />)
    expect(container.textContent).toContain('The note.')
  })

  it('does not parse what is no prose', () => {
    const { container } = render(<Markdown text={'x '.repeat(20_000)} isGrowing />)
    expect(container.querySelectorAll('p')).toHaveLength(1)
    expect(container.textContent?.length).toBeGreaterThanOrEqual(39_999)
  })
})
