// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { Dialog } from './dialog'

beforeAll(() => {
  HTMLDialogElement.prototype.showModal = function open() {
    this.open = true
  }
  HTMLDialogElement.prototype.close = () => {}
})
afterEach(cleanup)

const escape = (): boolean => fireEvent(screen.getByRole('dialog'), new Event('cancel', { cancelable: true }))

it('closes on Escape and on a click beside it', () => {
  const close = vi.fn()
  render(<Dialog title="Any" onClose={close}>text</Dialog>)
  escape()
  fireEvent.click(screen.getByRole('dialog'))
  expect(close).toHaveBeenCalledTimes(2)
})

it('b22_one_that_shows_a_secret_once_closes_only_by_its_own_button', () => {
  const close = vi.fn()
  render(<Dialog title="Your new token" isSticky onClose={close}>grm_secret</Dialog>)
  escape()
  fireEvent.click(screen.getByRole('dialog'))
  expect(close).not.toHaveBeenCalled()
  expect(screen.queryByRole('button', { name: 'Close' })).toBeNull()
})
