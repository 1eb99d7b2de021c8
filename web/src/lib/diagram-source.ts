/**
 * The renderer takes the quotes of a label for a part of it, and what they protect for syntax. Inside quotes each sign
 * that means something is swapped for a letter of no language, one for one so that widths stay true, and back in the
 * picture.
 */
const signs = [...'()[]{}|<>"\'&;:-=.%#/\\@']
const firstStandIn = 0xe000
const standIns = /[\uE000-\uE0FF]/g

const isFlowchart = /^\s*(?:%%[^\n]*\n\s*)*(?:graph|flowchart)\b/

export function prepared(source: string): string {
  const text = source.replace(standIns, '').replace(/\r\n?/g, '\n')
  if (!isFlowchart.test(text)) return text.trim()
  const withBreaks = text.replace(/<br\s*\/?>/gi, ' ').replace(/;[ \t]*$/gm, '')
  return withBreaks.replace(/"([^"\n]*)"/g, (_, label: string) => [...label.trim()].map(hidden).join('')).trim()
}

export function restored(picture: string): string {
  return picture.replace(standIns, (letter) => escaped(signs[letter.charCodeAt(0) - firstStandIn] ?? ''))
}

function hidden(sign: string): string {
  const index = signs.indexOf(sign)
  return index === -1 ? sign : String.fromCharCode(firstStandIn + index)
}

const entities: Record<string, string> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;', "'": '&#39;' }

function escaped(sign: string): string {
  return entities[sign] ?? sign
}
