interface Node {
  type: string
  value?: string
  children?: Node[]
}

const holdsText = new Set(['paragraph', 'heading', 'emphasis', 'strong', 'delete', 'link', 'linkReference', 'tableCell'])

/**
 * A remark plugin. Markdown takes `<T>` for HTML, and sanitising would take it away; what was said is shown instead, as
 * the letters it was said in.
 */
export function htmlAsText(): (tree: Node) => void {
  return change
}

function change(parent: Node): void {
  parent.children = parent.children?.map((child) => {
    if (child.type !== 'html') {
      change(child)
      return child
    }
    const text = { type: 'text', value: child.value ?? '' }
    return holdsText.has(parent.type) ? text : { type: 'paragraph', children: [text] }
  })
}
