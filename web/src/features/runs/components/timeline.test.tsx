// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, within } from '@testing-library/react'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import type { Span } from '@/lib/api/types'
import { Timeline } from './timeline'

beforeAll(() => {
  Element.prototype.scrollIntoView = vi.fn()
})
afterEach(cleanup)

const spans: Span[] = [
  { kind: 'queued', from_ms: 0, to_ms: 20 },
  { kind: 'model', from_ms: 20, to_ms: 800 },
  { kind: 'tool', name: 'Bash', from_ms: 800, to_ms: 900, is_error: true },
]

it('has one stop for the Tab key, and arrows from there', () => {
  render(<Timeline spans={spans} now={0} />)
  const bars = screen.getAllByRole('button')
  expect(bars.map((bar) => bar.getAttribute('tabindex'))).toEqual(['0', '-1', '-1'])
  bars[0]?.focus()
  fireEvent.keyDown(document.activeElement as Element, { key: 'ArrowRight' })
  expect(document.activeElement?.getAttribute('aria-label')).toContain('Model call')
  fireEvent.keyDown(document.activeElement as Element, { key: 'End' })
  expect(document.activeElement?.getAttribute('aria-label')).toBe('Tool: Bash, from 800 ms, took 100 ms, failed')
  fireEvent.keyDown(document.activeElement as Element, { key: 'ArrowRight' })
  expect(document.activeElement?.getAttribute('aria-label')).toContain('Bash')
})

it('says the same in a table, and marks there what was chosen', () => {
  render(<Timeline spans={spans} now={0} />)
  const rows = within(screen.getByRole('table')).getAllByRole('row').slice(1)
  expect(rows.map((row) => row.textContent)).toEqual(['Queued0 ms20 msdone', 'Model call20 ms780 msdone', 'Tool: Bash800 ms100 msfailed'])
  fireEvent.keyDown(screen.getByRole('button', { name: /Bash/ }), { key: 'Enter' })
  expect(rows[2]?.hasAttribute('data-chosen')).toBe(true)
})

it('shows hundreds of steps only when asked', () => {
  const many = Array.from({ length: 250 }, (_, index): Span => ({ kind: 'tool', name: `t${index}`, from_ms: index, to_ms: index + 1 }))
  render(<Timeline spans={many} now={0} />)
  expect(screen.getAllByRole('row')).toHaveLength(101)
  fireEvent.click(screen.getByRole('button', { name: 'Show all 250 steps' }))
  expect(screen.getAllByRole('row')).toHaveLength(251)
})
