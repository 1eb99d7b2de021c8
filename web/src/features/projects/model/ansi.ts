/** A piece of a terminal's output with one look. */
export interface AnsiPiece {
  text: string
  /** One of the 16 colors by number, or a CSS color. */
  color: number | string | null
  background: number | string | null
  isBold: boolean
  isDim: boolean
  isItalic: boolean
  isUnderlined: boolean
}

type Look = Omit<AnsiPiece, 'text'>

const plain: Look = { color: null, background: null, isBold: false, isDim: false, isItalic: false, isUnderlined: false }

// What is not a color, such as a move of the cursor or a title of the window, is left out.
// oxlint-disable-next-line no-control-regex
const sequence = /\u001b\[([0-9;:?]*)([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]|[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f]/g

/** Takes colors and styles out of a text. A carriage return begins its line again, as progress bars do. */
export function parseAnsi(text: string): AnsiPiece[] {
  const pieces: AnsiPiece[] = []
  let look = plain
  let from = 0
  const push = (part: string): void => {
    if (part === '') return
    const last = pieces.at(-1)
    if (last && isSameLook(last, look)) last.text += part
    else pieces.push({ ...look, text: part })
  }
  const source = withoutOverwritten(text)
  for (const match of source.matchAll(sequence)) {
    push(source.slice(from, match.index))
    from = match.index + match[0].length
    if (match[2] === 'm') look = styled(look, match[1] ?? '')
  }
  push(source.slice(from))
  return pieces
}

function withoutOverwritten(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => (line.includes('\r') ? line.slice(line.replace(/\r+$/, '').lastIndexOf('\r') + 1).replace(/\r+$/, '') : line))
    .join('\n')
}

function styled(before: Look, parameters: string): Look {
  const codes = parameters.split(/[;:]/).map(Number)
  let look = before
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0
    if (code === 38 || code === 48) {
      const [color, used] = extended(codes.slice(at + 1))
      look = code === 38 ? { ...look, color } : { ...look, background: color }
      at += used
    } else look = simple(look, code)
  }
  return look
}

function simple(look: Look, code: number): Look {
  if (code === 0) return plain
  if (code === 1) return { ...look, isBold: true }
  if (code === 2) return { ...look, isDim: true }
  if (code === 3) return { ...look, isItalic: true }
  if (code === 4) return { ...look, isUnderlined: true }
  if (code === 22) return { ...look, isBold: false, isDim: false }
  if (code === 23) return { ...look, isItalic: false }
  if (code === 24) return { ...look, isUnderlined: false }
  if (code >= 30 && code <= 37) return { ...look, color: code - 30 }
  if (code === 39) return { ...look, color: null }
  if (code >= 40 && code <= 47) return { ...look, background: code - 40 }
  if (code === 49) return { ...look, background: null }
  if (code >= 90 && code <= 97) return { ...look, color: code - 82 }
  if (code >= 100 && code <= 107) return { ...look, background: code - 92 }
  return look
}

/** `5;n` is one of 256 colors, `2;r;g;b` any. Returns how many codes belong to it. */
function extended([kind, ...rest]: number[]): [color: number | string | null, used: number] {
  if (kind === 2) return [`rgb(${rest.slice(0, 3).map((part) => Math.min(255, part || 0)).join(' ')})`, 4]
  const index = rest[0] ?? 0
  if (kind !== 5) return [null, 0]
  if (index < 16) return [index, 2]
  if (index >= 232) return [grey(8 + (index - 232) * 10), 2]
  const step = (value: number): number => (value === 0 ? 0 : 55 + value * 40)
  const cube = index - 16
  return [`rgb(${step(Math.floor(cube / 36))} ${step(Math.floor(cube / 6) % 6)} ${step(cube % 6)})`, 2]
}

function grey(value: number): string {
  return `rgb(${value} ${value} ${value})`
}

function isSameLook(one: Look, other: Look): boolean {
  return (Object.keys(plain) as (keyof Look)[]).every((key) => one[key] === other[key])
}
