// @vitest-environment jsdom
import { cleanup, render, screen, waitFor } from '@testing-library/react'
import { afterEach, expect, it } from 'vitest'
import { Markdown } from './markdown'

afterEach(cleanup)

it('b17_formulas_are_mathml_without_inline_styles_or_links', async () => {
  const { container } = render(<Markdown text={'so \\(\\frac{a}{b}\\) and \\[\\href{javascript:alert(1)}{x}\\]'} />)
  await waitFor(() => expect(container.querySelectorAll('math')).toHaveLength(2), { timeout: 30_000 })
  expect(container.querySelector('mfrac')?.textContent).toBe('ab')
  expect(container.querySelector('a, [href]')).toBeNull()
})

it('a formula that is wrong stays readable', async () => {
  const { container } = render(<Markdown text={'$\\unknownthing{x}$'} />)
  await waitFor(() => expect(container.querySelector('math')).toBeTruthy(), { timeout: 30_000 })
  expect(container.textContent).toContain('unknownthing')
})

it('b18_each_paragraph_has_its_own_direction', () => {
  const { container } = render(<Markdown text={'# עברית\n\nEnglish\n\n- عربي\n\n| א | b |\n|---|---|\n| ג | d |'} />)
  for (const tag of ['h1', 'p', 'li', 'th', 'td']) expect(container.querySelector(tag)?.getAttribute('dir')).toBe('auto')
})

it('b12_of_a_very_long_text_only_its_ends_are_in_the_page', () => {
  const line = 'word '.repeat(19) + '\n'
  const { container } = render(<Markdown text={line.repeat(42_000)} />)
  expect(container.textContent?.length).toBeLessThan(40_000)
  expect(screen.getByText(/MB not shown/)).toBeTruthy()
  expect(screen.getByRole('button', { name: 'Show more' })).toBeTruthy()
})

it('uploads of this server are pictures, every other address is a link', () => {
  const id = '01a1ea98-51e8-7596-8c5e-c8bd7003e5b2'
  render(<Markdown text={`![chart](/api/uploads/${id}) ![spy](https://example.org/pixel.png)`} />)
  expect(screen.getByRole('img', { name: 'chart' }).getAttribute('src')).toBe(`/api/uploads/${id}`)
  expect(screen.getByRole('link', { name: 'spy' })).toBeTruthy()
})
