// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { commandStore } from '@/lib/commands'
import { Palette } from './palette'

beforeAll(() => {
  Element.prototype.scrollIntoView = () => {}
  HTMLDialogElement.prototype.showModal = function open() {
    this.open = true
  }
  HTMLDialogElement.prototype.close = () => {}
})
afterEach(() => {
  cleanup()
  commandStore.set([])
})

const rooms = Array.from({ length: 318 }, (_, index) => ({ id: `r${index}`, title: `Room ${index}`, group: 'rooms' as const, run: () => {} }))
const settings = { id: 's', title: 'Room settings', group: 'room' as const, run: () => {} }

it('b3: offers commands however many rooms there are, also before anything is typed', () => {
  commandStore.set([...rooms, settings])
  render(<Palette onClose={() => {}} />)
  expect(screen.getByRole('option', { name: 'Room settings' })).toBeTruthy()
  fireEvent.change(screen.getByRole('combobox'), { target: { value: 'room' } })
  expect(screen.getByRole('option', { name: 'Room settings' })).toBeTruthy()
  expect(screen.getAllByRole('option').length).toBeLessThan(30)
})
