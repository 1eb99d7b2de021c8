import { describe, expect, it } from 'vitest'
import { countHidden, escapeHidden, splitHidden, withoutHidden } from './hidden-characters'

describe('hidden characters', () => {
  it.each([
    ['a bidirectional override', 'rm \u202Etxt.exe', 'rm ⟨U+202E⟩txt.exe'],
    ['isolates', '\u2066a\u2069', '⟨U+2066⟩a⟨U+2069⟩'],
    ['marks of direction', 'a\u200Eb\u200Fc\u061C', 'a⟨U+200E⟩b⟨U+200F⟩c⟨U+061C⟩'],
    ['zero-width characters', 'ev\u200Bil\u200C\u200D\u2060\uFEFF', 'ev⟨U+200B⟩il⟨U+200C⟩⟨U+200D⟩⟨U+2060⟩⟨U+FEFF⟩'],
    ['a soft hyphen', 'a\u00ADb', 'a⟨U+00AD⟩b'],
    ['controls', 'a\u0000\u0008\u001B[2K\u007F\u009B', 'a⟨U+0000⟩⟨U+0008⟩⟨U+001B⟩[2K⟨U+007F⟩⟨U+009B⟩'],
    ['a carriage return, which hides a line in a terminal', 'rm -rf ~\rls', 'rm -rf ~⟨U+000D⟩ls'],
    ['line separators', 'a\u2028b\u2029c\u0085d', 'a⟨U+2028⟩b⟨U+2029⟩c⟨U+0085⟩d'],
    ['tags', 'hi\u{E0068}\u{E0069}\u{E0001}\u{E007F}', 'hi⟨U+E0068⟩⟨U+E0069⟩⟨U+E0001⟩⟨U+E007F⟩'],
    ['variation selectors', 'a\uFE0Fb\uFE00c\u{E0100}\u180B', 'a⟨U+FE0F⟩b⟨U+FE00⟩c⟨U+E0100⟩⟨U+180B⟩'],
    ['fillers', 'a\u3164\u115F\u1160\uFFA0\u2800\u034F\u17B4', 'a⟨U+3164⟩⟨U+115F⟩⟨U+1160⟩⟨U+FFA0⟩⟨U+2800⟩⟨U+034F⟩⟨U+17B4⟩'],
    ['spaces that do not separate words', 'rm\u00A0-rf\u3000/\u2009x', 'rm⟨U+00A0⟩-rf⟨U+3000⟩/⟨U+2009⟩x'],
    ['half of a pair', 'a\uD800b', 'a⟨U+D800⟩b'],
    ['non-characters', 'a\uFFFEb', 'a⟨U+FFFE⟩b'],
    ['joiners and selectors outside of emoji', '1\uFE0F2 a\u200D👩', '1⟨U+FE0F⟩2 a⟨U+200D⟩👩'],
    ['selectors after the first', '❤\uFE0F\uFE0F', '❤\uFE0F⟨U+FE0F⟩'],
    ['the tags of a flag', '🏴\u{E0067}\u{E007F}', '🏴⟨U+E0067⟩⟨U+E007F⟩'],
  ])('l9_show %s', (_, text, shown) => {
    expect(withoutHidden(text)).toBe(shown)
  })

  it.each(['plain text\n\twith breaks\r\n', 'ünïcödé 漢字 עברית العربية हिन्दी', '👩‍💻 ❤️ 1️⃣ 👍🏽 👨‍👩‍👧 🇩🇪 🏳️‍🌈', '⟨U+202E⟩', ''])('leave alone %j', (text) => {
    expect(withoutHidden(text)).toBe(text)
    expect(countHidden(text)).toBe(0)
  })

  it('say what they are', () => {
    expect(splitHidden('a\u202E\u{E0061}\u00A0\u0007\uFE01b')).toEqual([
      { kind: 'text', text: 'a' },
      { kind: 'hidden', codePoint: 'U+202E', name: 'right-to-left override' },
      { kind: 'hidden', codePoint: 'U+E0061', name: 'tag a' },
      { kind: 'hidden', codePoint: 'U+00A0', name: 'no-break space' },
      { kind: 'hidden', codePoint: 'U+0007', name: 'control character' },
      { kind: 'hidden', codePoint: 'U+FE01', name: 'variation selector' },
      { kind: 'text', text: 'b' },
    ])
  })

  it('are counted in keys and values, at any depth', () => {
    expect(countHidden({ 'a\u200B': ['b\u202E', { c: '\u{E0041}' }], d: 1, e: null })).toBe(3)
  })

  it('are escapes in JSON that means the same', () => {
    const value = { 'a\u200B': 'b\u202E\u{E0041} 👩‍💻\n' }
    const json = escapeHidden(JSON.stringify(value, null, 2))
    expect(json).toContain('"a\\u200b": "b\\u202e\\udb40\\udc41 👩‍💻\\n"')
    expect(JSON.parse(json)).toEqual(value)
  })
})
