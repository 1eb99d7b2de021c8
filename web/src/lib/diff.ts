export interface DiffLine {
  kind: 'same' | 'added' | 'removed'
  text: string
}

/** Beyond this a comparison line by line takes too long to be worth it. */
const mostCells = 4_000_000

/** What has to change in `before` to get `after`, line by line. */
export function diffLines(before: string, after: string): DiffLine[] {
  const old = linesOf(before)
  const now = linesOf(after)
  let head = 0
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1
  let tail = 0
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1
  const middle = between(old.slice(head, old.length - tail), now.slice(head, now.length - tail))
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  return [...old.slice(0, head).map(same), ...middle, ...old.slice(old.length - tail).map(same)]
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n')
}

function between(old: string[], now: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text })
  const added = (text: string): DiffLine => ({ kind: 'added', text })
  if (old.length * now.length > mostCells) return [...old.map(removed), ...now.map(added)]
  const common = commonLengths(old, now)
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < old.length && j < now.length) {
    const [was, is] = [old[i] ?? '', now[j] ?? '']
    if (was === is) {
      lines.push({ kind: 'same', text: was })
      i += 1
      j += 1
    } else if ((common[i + 1]?.[j] ?? 0) >= (common[i]?.[j + 1] ?? 0)) {
      lines.push(removed(was))
      i += 1
    } else {
      lines.push(added(is))
      j += 1
    }
  }
  return [...lines, ...old.slice(i).map(removed), ...now.slice(j).map(added)]
}

/** How many lines the rests from (i, j) on have in common. */
function commonLengths(old: string[], now: string[]): Uint32Array[] {
  const table = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1))
  for (let i = old.length - 1; i >= 0; i -= 1) {
    const [row, below] = [table[i], table[i + 1]]
    if (!row || !below) continue
    for (let j = now.length - 1; j >= 0; j -= 1) {
      row[j] = old[i] === now[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0)
    }
  }
  return table
}
