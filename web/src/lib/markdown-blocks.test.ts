import { describe, expect, it } from 'vitest'
import { BlockSplitter, definitionsIn, hasFootnotes, splitBlocks } from './markdown-blocks'

const shape = (text: string): string[] => splitBlocks(text).map((block) => `${block.kind}:${block.text.trimEnd()}`)

describe('blocks', () => {
  it('end at empty lines', () => {
    expect(shape('# One\nstill one\n\ntwo\n\n\n| a |\n|---|\n| b |\n')).toEqual([
      'markdown:# One\nstill one',
      'markdown:two',
      'markdown:| a |\n|---|\n| b |',
    ])
  })

  it('keep lists whole, with what is indented in them', () => {
    const list = '1. one\n\n   more of one\n\n   ```js\n   a\n\n   b\n   ```\n\n2. two'
    expect(shape(`${list}\n\nafter`)).toEqual([`markdown:${list}`, 'markdown:after'])
  })

  it('let fenced code stand alone, open or closed', () => {
    expect(splitBlocks('text\n```ts extra\na\n\nb\n```\nmore\n~~~\nc')).toMatchObject([
      { kind: 'markdown', text: 'text\n' },
      { kind: 'code', text: 'a\n\nb', language: 'ts', isClosed: true },
      { kind: 'markdown', text: 'more\n' },
      { kind: 'code', text: 'c', language: '', isClosed: false },
    ])
  })

  it('are not ended by a shorter fence or by another kind', () => {
    expect(shape('````\n```\n~~~~\n````\nx')).toEqual(['code:```\n~~~~', 'markdown:x'])
  })

  it('do not take inline code for a fence', () => {
    expect(shape('```not a fence``` here\n\nnext')).toEqual(['markdown:```not a fence``` here', 'markdown:next'])
  })

  it('are the same whether a text came at once or letter by letter', () => {
    const text = 'Intro\n\n- a\n- b\n\n  c\n\n```py\nprint(1)\n\n```\n\n> quote\n\n[x]: y\n\n1) one\n\n2) two\n\n3 is no item\n\n- a\n\n4. four\n\ntail *of* it'
    const splitter = new BlockSplitter()
    for (let length = 1; length <= text.length; length += 1) {
      expect(splitter.update(text.slice(0, length))).toEqual(splitBlocks(text.slice(0, length)))
    }
    expect(splitter.update('other')).toEqual(splitBlocks('other'))
  })

  it('know link definitions and footnotes', () => {
    expect(definitionsIn('see [a]\n\n[a]: https://x.example\n[^1]: note')).toBe('[a]: https://x.example')
    expect(hasFootnotes('a[^1]\n\n[^1]: note')).toBe(true)
    expect(hasFootnotes('a[^1] only')).toBe(false)
  })
})
