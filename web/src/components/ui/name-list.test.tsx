// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { type ReactNode, useState } from 'react'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { NameList } from './name-list'

let names: readonly string[]

function Host(): ReactNode {
  const [value, setValue] = useState<readonly string[]>(['Read', 'Bash'])
  const change = (next: readonly string[]): void => {
    names = next
    setValue(next)
  }
  return <NameList label="Tools" names={value} known={['Grep']} onChange={change} />
}

beforeEach(() => {
  names = ['Read', 'Bash']
  render(<Host />)
})
afterEach(cleanup)

const field = (): HTMLInputElement => screen.getByLabelText('Tools')
const type = (text: string): boolean => fireEvent.input(field(), { target: { value: text }, inputType: 'insertText', data: text })

it('takes a name on Enter, on a comma and when it is left', () => {
  type('Write')
  fireEvent.keyDown(field(), { key: 'Enter' })
  expect(names).toEqual(['Read', 'Bash', 'Write'])
  type('LS, Glob ,,')
  expect(names).toEqual(['Read', 'Bash', 'Write', 'LS', 'Glob'])
  type('Edit')
  fireEvent.blur(field())
  expect(names).toEqual(['Read', 'Bash', 'Write', 'LS', 'Glob', 'Edit'])
})

it('takes nothing twice, and nothing empty', () => {
  type('Read')
  fireEvent.keyDown(field(), { key: 'Enter' })
  type('  ')
  fireEvent.blur(field())
  expect(names).toEqual(['Read', 'Bash'])
})

it('gives a name back to be changed, by Backspace or a press', () => {
  fireEvent.keyDown(field(), { key: 'Backspace' })
  expect(names).toEqual(['Read'])
  expect(field().value).toBe('Bash')
  fireEvent.click(screen.getByRole('button', { name: 'Change Read' }))
  expect(names).toEqual(['Bash'])
  expect(field().value).toBe('Read')
})

it('removes a name', () => {
  fireEvent.click(screen.getByRole('button', { name: 'Remove Read' }))
  expect(names).toEqual(['Bash'])
})

it('takes what was chosen from the offer at once', () => {
  fireEvent.input(field(), { target: { value: 'Grep' }, inputType: 'insertReplacementText' })
  expect(names).toEqual(['Read', 'Bash', 'Grep'])
})
