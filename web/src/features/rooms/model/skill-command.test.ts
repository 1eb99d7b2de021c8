import { describe, expect, it } from 'vitest'
import type { Skill } from './skill'
import { commandFor, missingIn, skillsAt, startOf } from './skill-command'

const review: Skill = {
  name: 'code-review',
  description: 'Reviews',
  parameters: [
    { name: 'path', type: 'file_path', required: true },
    { name: 'depth', type: 'number', default: 3 },
  ],
}
const translate: Skill = { name: 'translate', display_name: 'Übersetzen', description: 'Translates', parameters: [] }
const names = (text: string, caret = text.length): string[] | undefined => skillsAt(text, caret, [review, translate])?.matches.map(({ name }) => name)

describe('a message that calls a skill', () => {
  it('is completed while its name is typed at the very beginning, and nowhere else', () => {
    expect(names('/')).toEqual(['code-review', 'translate'])
    expect(names('/co')).toEqual(['code-review'])
    expect(names('/review')).toEqual(['code-review'])
    expect(names('/über')).toBeUndefined()
    expect(names('say /co')).toBeUndefined()
    expect(names('/etc/passwd')).toBeUndefined()
    expect(names('/code-review path=x')).toBeUndefined()
    expect(names('/code-review', 3)).toBeUndefined()
  })

  it('says what differs from the defaults, quoted where it must be', () => {
    expect(startOf(review.parameters)).toEqual({ path: '', depth: '3' })
    expect(commandFor(review, { path: 'src/a.rs', depth: '3' })).toBe('/code-review path=src/a.rs ')
    expect(commandFor(review, { path: 'my "odd" \\ folder', depth: '5' })).toBe('/code-review path="my \\"odd\\" \\\\ folder" depth=5 ')
    expect(commandFor(translate, {})).toBe('/translate ')
  })

  it('knows what is still missing', () => {
    expect(missingIn(review.parameters, { path: ' ', depth: '' })).toEqual(['path'])
    expect(missingIn(review.parameters, { path: 'a' })).toEqual([])
  })
})
