// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { type ReactNode, useRef, useState } from 'react'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import type { Agent } from '@/lib/api/types'
import { MessageField } from './message-field'

const beatrice = { id: 'b', name: 'Beatrice' } as Agent
const nothing = (): void => {}
const sent = vi.fn()
const recalled = vi.fn()

beforeAll(() => {
  Element.prototype.scrollIntoView = nothing
})
afterEach(() => {
  cleanup()
  vi.clearAllMocks()
  vi.unstubAllGlobals()
})

function Field(): ReactNode {
  const ref = useRef<HTMLTextAreaElement>(null)
  const [text, setText] = useState('')
  return <MessageField ref={ref} text={text} agents={[beatrice]} skills={[]} onChange={setText} onSend={sent} onRecall={recalled} onFiles={nothing} onSkill={nothing} />
}

it('the caret is behind a completed name at once, so that what is typed next goes there', () => {
  render(<Field />)
  const field = screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'Message' })
  fireEvent.change(field, { target: { value: '@be are you there?', selectionStart: 3, selectionEnd: 3 } })
  fireEvent.keyDown(field, { key: 'Enter' })
  expect(field.value).toBe('@Beatrice are you there?')
  expect(field.selectionStart).toBe('@Beatrice '.length)
})

it('Enter sends, and begins a new line where the keyboard has no other way', () => {
  render(<Field />)
  const field = screen.getByRole('textbox', { name: 'Message' })
  fireEvent.keyDown(field, { key: 'Enter', shiftKey: true })
  expect(sent).not.toHaveBeenCalled()
  fireEvent.keyDown(field, { key: 'Enter' })
  expect(sent).toHaveBeenCalledTimes(1)
  vi.stubGlobal('matchMedia', () => ({ matches: true }))
  fireEvent.keyDown(field, { key: 'Enter' })
  expect(sent).toHaveBeenCalledTimes(1)
})

it('an arrow up in the empty field gets the last message back', () => {
  render(<Field />)
  const field = screen.getByRole('textbox', { name: 'Message' })
  fireEvent.keyDown(field, { key: 'ArrowUp' })
  expect(recalled).toHaveBeenCalledTimes(1)
  fireEvent.change(field, { target: { value: 'typed' } })
  fireEvent.keyDown(field, { key: 'ArrowUp' })
  expect(recalled).toHaveBeenCalledTimes(1)
})
