// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { type ReactNode, useRef, useState } from 'react'
import { afterEach, beforeAll, expect, it } from 'vitest'
import type { Agent } from '@/lib/api/types'
import { MessageField } from './message-field'

const beatrice = { id: 'b', name: 'Beatrice' } as Agent
const nothing = (): void => {}

beforeAll(() => {
  Element.prototype.scrollIntoView = nothing
})
afterEach(cleanup)

function Field(): ReactNode {
  const ref = useRef<HTMLTextAreaElement>(null)
  const [text, setText] = useState('')
  return <MessageField ref={ref} text={text} agents={[beatrice]} skills={[]} onChange={setText} onSend={nothing} onFiles={nothing} onSkill={nothing} />
}

it('the caret is behind a completed name at once, so that what is typed next goes there', () => {
  render(<Field />)
  const field = screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'Message' })
  fireEvent.change(field, { target: { value: '@be are you there?', selectionStart: 3, selectionEnd: 3 } })
  fireEvent.keyDown(field, { key: 'Enter' })
  expect(field.value).toBe('@Beatrice are you there?')
  expect(field.selectionStart).toBe('@Beatrice '.length)
})
