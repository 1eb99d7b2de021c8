import { type ReactNode, createElement } from 'react'

/** What Temml writes; anything else becomes its text. */
const tags = new Set('math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle merror mpadded mphantom menclose msub msup msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd semantics'.split(' '))
const attributes = new Set(
  'display dir mathvariant displaystyle scriptlevel stretchy fence separator form lspace rspace minsize maxsize symmetric largeop movablelimits accent accentunder linethickness width height depth voffset columnalign rowspan columnspan notation mathcolor mathbackground mathsize bevelled'.split(' '),
)

/** Without this interface, elements of MathML have no styles to set. */
const canStyle = typeof MathMLElement !== 'undefined'

const drawn = new Map<string, ReactNode>()
/** Formulas are small; a long conversation has hundreds. */
const mostKept = 2000

/** The formula if it was drawn before. */
export function formulaDrawn(tex: string, isDisplay: boolean): ReactNode {
  return drawn.get(keyOf(tex, isDisplay)) ?? null
}

/** TeX as MathML elements, which browsers draw themselves. Loads Temml with the first formula. */
export async function drawFormula(tex: string, isDisplay: boolean): Promise<ReactNode> {
  const { default: temml } = await import('temml')
  const markup = temml.renderToString(tex, { displayMode: isDisplay, throwOnError: false, trust: false, maxExpand: 500, xml: true })
  // The policy of the page forbids style attributes; as elements of React, styles are set by script.
  const root = new DOMParser().parseFromString(markup.replaceAll(' style="', ' data-style="'), 'application/xml').documentElement
  const formula = root.localName === 'math' ? toReact(root, 0) : null
  if (drawn.size >= mostKept) drawn.clear()
  drawn.set(keyOf(tex, isDisplay), formula)
  return formula
}

function keyOf(tex: string, isDisplay: boolean): string {
  return `${isDisplay ? 'd' : 'i'}${tex}`
}

function toReact(node: Node, key: number): ReactNode {
  if (!(node instanceof Element)) return node.textContent
  if (!tags.has(node.localName)) return node.textContent
  const props: Record<string, unknown> = { key }
  for (const { name, value } of node.attributes) {
    if (attributes.has(name)) props[name] = value
    else if (name === 'data-style' && canStyle) props.style = styleFrom(value)
  }
  return createElement(node.localName, props, ...[...node.childNodes].map(toReact))
}

/** `padding-left:0em;color:#f00;` without anything that could load something. */
function styleFrom(text: string): Record<string, string> {
  const rules = text.split(';').flatMap((rule) => {
    const [name, ...value] = rule.split(':')
    const words = value.join(':').trim()
    if (!name?.trim() || words === '' || /url\(|expression|@/i.test(words)) return []
    return [[name.trim().replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()), words]]
  })
  return Object.fromEntries(rules) as Record<string, string>
}
