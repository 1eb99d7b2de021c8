import { t } from './texts'

/**
 * Characters that a person does not see, or that change what they see: bidirectional controls, zero-width characters, other format
 * and control characters, tags, variation selectors, fillers, line separators, and spaces that look like one but are none. A tool's
 * input that contains some would be judged by what it looks like, not by what it does.
 */
const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800]/gu
/** Seen as what they are: an indent, a gap, a break (as Windows writes it, too). */
const seen = /^[\n\t ]$/
/** A selector or joiner inside an emoji is a part of its picture. */
const emoji = /\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?(?:\u200D\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?)*|[0-9#*]\uFE0F\u20E3/gu

export type TextPiece = { kind: 'text'; text: string } | { kind: 'hidden'; codePoint: string; name: string }

/** Splits a text at its hidden characters. */
export function splitHidden(text: string): TextPiece[] {
  const pieces: TextPiece[] = []
  let end = 0
  for (const { index, character } of hiddenIn(text)) {
    if (index > end) pieces.push({ kind: 'text', text: text.slice(end, index) })
    pieces.push({ kind: 'hidden', codePoint: codePointOf(character), name: nameOf(character) })
    end = index + character.length
  }
  if (end < text.length) pieces.push({ kind: 'text', text: text.slice(end) })
  return pieces
}

/** The same as plain text, for labels: `a⟨U+202E⟩b`. */
export function withoutHidden(text: string): string {
  return splitHidden(text)
    .map((piece) => (piece.kind === 'text' ? piece.text : `⟨${piece.codePoint}⟩`))
    .join('')
}

/** JSON text of the same value in which hidden characters are written as escapes. */
export function escapeHidden(json: string): string {
  let escaped = ''
  let end = 0
  for (const { index, character } of hiddenIn(json)) {
    const units = Array.from({ length: character.length }, (_, unit) => `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`)
    escaped += json.slice(end, index) + units.join('')
    end = index + character.length
  }
  return escaped + json.slice(end)
}

/** How many hidden characters are in a value, its keys included. */
export function countHidden(value: unknown): number {
  if (typeof value === 'string') return hiddenIn(value).length
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce((sum, [key, one]) => sum + hiddenIn(key).length + countHidden(one), 0)
}

function hiddenIn(text: string): { index: number; character: string }[] {
  const found = [...text.matchAll(hidden)].filter(({ 0: character, index }) => !seen.test(character) && !(character === '\r' && text[index + 1] === '\n'))
  if (found.length === 0) return []
  const inEmoji = new Set([...text.matchAll(emoji)].flatMap(({ 0: picture, index }) => Array.from({ length: picture.length }, (_, at) => index + at)))
  return found.filter(({ index }) => !inEmoji.has(index)).map(({ 0: character, index }) => ({ index, character }))
}

function codePointOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

const names: Record<string, string> = {
  '\u0000': 'null',
  '\u0008': 'backspace',
  get '\r'() {
      return t.carriageReturn
    },
  '\u001B': 'escape',
  get '\u00A0'() {
      return t.noBreakSpace
    },
  get '\u00AD'() {
      return t.softHyphen
    },
  get '\u061C'() {
      return t.arabicLetterMark
    },
  get '\u200B'() {
      return t.zeroWidthSpace
    },
  get '\u200C'() {
      return t.zeroWidthNonJoiner
    },
  get '\u200D'() {
      return t.zeroWidthJoiner
    },
  get '\u200E'() {
      return t.leftToRightMark
    },
  get '\u200F'() {
      return t.rightToLeftMark
    },
  get '\u202A'() {
      return t.leftToRightEmbedding
    },
  get '\u202B'() {
      return t.rightToLeftEmbedding
    },
  get '\u202C'() {
      return t.endOfDirection
    },
  get '\u202D'() {
      return t.leftToRightOverride
    },
  get '\u202E'() {
      return t.rightToLeftOverride
    },
  get '\u2028'() {
      return t.lineSeparator
    },
  get '\u2029'() {
      return t.paragraphSeparator
    },
  get '\u2060'() {
      return t.wordJoiner
    },
  get '\u2066'() {
      return t.leftToRightIsolate
    },
  get '\u2067'() {
      return t.rightToLeftIsolate
    },
  get '\u2068'() {
      return t.firstStrongIsolate
    },
  get '\u2069'() {
      return t.endOfIsolate
    },
  get '\uFEFF'() {
      return t.byteOrderMark
    },
}

/** What a character is, in words for people. */
function nameOf(character: string): string {
  const known = names[character]
  if (known) return known
  const point = character.codePointAt(0) ?? 0
  // Tags repeat ASCII, invisibly: the letter behind one says what is smuggled.
  if (point > 0xe0020 && point < 0xe007f) return t.tag(String.fromCodePoint(point - 0xe0000))
  if (/\p{Variation_Selector}/u.test(character)) return t.variationSelector
  if (/\p{Zs}/u.test(character)) return t.unusualSpace
  return /\p{Cc}/u.test(character) ? t.controlCharacter : t.invisibleCharacter
}
