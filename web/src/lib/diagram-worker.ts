import { renderMermaid } from 'beautiful-mermaid'
import type { DiagramAnswer, DiagramRequest } from './diagram'
import { prepared, restored } from './diagram-source'

const remark = /^\s*(?:%%[^\n]*\n\s*)+/

async function draw({ source, colours }: DiagramRequest): Promise<string> {
  const text = prepared(source).replace(remark, '')
  const drawn = await renderMermaid(text, { ...colours, font: 'sans-serif', transparent: true, padding: 16, layerSpacing: 32 })
  // It would like to fetch its fonts. A picture may not, but it should not ask either.
  return restored(drawn.replace(/^\s*@import .*$/gm, ''))
}

addEventListener('message', ({ data }: MessageEvent<DiagramRequest>) => {
  const answer = (svg: string | null): void => postMessage({ id: data.id, svg } satisfies DiagramAnswer)
  // What cannot be drawn is shown as the text it is.
  draw(data).then(answer, () => answer(null))
})
