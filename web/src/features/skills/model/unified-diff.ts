export interface UnifiedLine {
  kind: 'same' | 'added' | 'removed' | 'place' | 'note'
  text: string
}

const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/

/**
 * The lines of a unified diff. How long a hunk is stands in its head, so a line of the text that begins like a head of the
 * diff is still a line of the text.
 */
export function readUnified(diff: string): UnifiedLine[] {
  const lines: UnifiedLine[] = []
  let [old, now] = [0, 0]
  for (const line of diff.replace(/\n$/, '').split('\n')) {
    const head = old <= 0 && now <= 0 ? hunk.exec(line) : null
    if (head) {
      old = Number(head[1] ?? 1)
      now = Number(head[2] ?? 1)
      if (lines.some(({ kind }) => kind !== 'note')) lines.push({ kind: 'place', text: '' })
    } else if (old > 0 || now > 0) {
      const kind = line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : line.startsWith('\\') ? 'note' : 'same'
      if (kind === 'note') continue
      if (kind !== 'added') old -= 1
      if (kind !== 'removed') now -= 1
      lines.push({ kind, text: line.slice(1) })
    } else if (line !== '' && !/^(---|\+\+\+) /.test(line) && !line.startsWith('\\')) {
      lines.push({ kind: 'note', text: line })
    }
  }
  return lines
}
