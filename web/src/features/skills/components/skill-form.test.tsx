// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, within } from '@testing-library/react'
import { type ReactNode, useState } from 'react'
import { afterEach, expect, it } from 'vitest'
import type { Finding, Round, SkillSpec } from '@/lib/api/types'
import { type Draft, draftOf, emptySpec, specOf } from '../model/draft'
import { ScoreChart } from './score-chart'
import { SkillForm } from './skill-form'
import { UnifiedDiff } from './unified-diff'

afterEach(cleanup)

const typed: Draft[] = []
function Form({ findings = [], isNew = true }: { findings?: Finding[]; isNew?: boolean }): ReactNode {
  const [draft, setDraft] = useState(() => draftOf({ ...emptySpec, parameters: [{ name: 'depth', type: 'number' }] }))
  const change = (changed: Draft): void => {
    typed.push(changed)
    setDraft(changed)
  }
  return <SkillForm draft={draft} isNew={isNew} findings={findings} preview={null} onChange={change} />
}

it('ties each finding to its field, and tells the rest at the top', () => {
  const findings: Finding[] = [
    { level: 'error', pointer: '/description', message: 'too short' },
    { level: 'warning', pointer: '/parameters/0/name', message: 'not used' },
    { level: 'warning', pointer: '/mood', message: 'unknown' },
  ]
  render(<Form findings={findings} />)
  const description = screen.getByLabelText('Description')
  expect(description.getAttribute('aria-invalid')).toBe('true')
  expect(describedBy(description)).toContain('Error: too short')
  const name = within(screen.getByRole('group', { name: 'Parameter depth' })).getByLabelText('Name')
  expect(name.hasAttribute('aria-invalid')).toBe(false)
  expect(describedBy(name)).toContain('Warning: not used')
  expect(screen.getAllByText('unknown')).toHaveLength(1)
})

it('keeps the name of a skill that exists', () => {
  render(<Form isNew={false} />)
  const [name] = screen.getAllByLabelText('Name')
  expect((name as HTMLInputElement).disabled).toBe(true)
})

it('adds, types and removes parameters', () => {
  render(<Form />)
  fireEvent.click(screen.getByRole('button', { name: 'Add a parameter' }))
  const rows = screen.getAllByRole('group', { name: /^Parameter/ })
  const second = within(rows[1] as HTMLElement)
  fireEvent.change(second.getByLabelText('Name'), { target: { value: 'language' } })
  fireEvent.change(second.getByLabelText('Type'), { target: { value: 'choice' } })
  fireEvent.change(second.getByLabelText('Choices (one per line)'), { target: { value: 'de\nen' } })
  fireEvent.change(second.getByLabelText('Default'), { target: { value: 'en' } })
  fireEvent.click(screen.getByRole('button', { name: 'Remove depth' }))
  expect(typedSpec().parameters).toEqual([{ name: 'language', type: 'choice', description: null, required: false, default: 'en', choices: ['de', 'en'] }])
})

it('forgets a default when the type changes', () => {
  render(<Form />)
  const row = within(screen.getByRole('group', { name: 'Parameter depth' }))
  fireEvent.change(row.getByLabelText('Default'), { target: { value: '3' } })
  fireEvent.change(row.getByLabelText('Type'), { target: { value: 'boolean' } })
  expect(typedSpec().parameters?.[0]).toMatchObject({ type: 'boolean', default: null })
})

it('reads out what a diff only colours', () => {
  render(<UnifiedDiff label="Changes" diff={'@@ -1 +1 @@\n-old\n+new\n'} />)
  expect(screen.getByRole('region', { name: 'Changes' }).textContent).toContain('removed: old')
  cleanup()
  render(<UnifiedDiff label="Changes" diff="" />)
  screen.getByText('No differences.')
})

it('has one stop in the chart for the Tab key, and arrows from there', () => {
  const rounds = [3, 2, 1].map((score): Round => ({ id: `${score}`, kind: 'rating', score, experience: score * 10, version: 1, comment: null, issues: [], improvements: [], created_at: '2026-01-01T00:00:00Z' }))
  render(<ScoreChart rounds={rounds} />)
  const points = screen.getAllByRole('img')
  expect(points.map((point) => point.getAttribute('tabindex'))).toEqual(['-1', '-1', '0'])
  fireEvent.focus(points[2] as Element)
  points[2]?.focus()
  fireEvent.keyDown(document.activeElement as Element, { key: 'Home' })
  expect(document.activeElement?.getAttribute('aria-label')).toMatch(/^10 of 100 after a rating of 1 for version 1/)
})

function typedSpec(): SkillSpec {
  return specOf(typed.at(-1) ?? draftOf(emptySpec)).spec
}

function describedBy(field: HTMLElement): string {
  const ids = field.getAttribute('aria-describedby')?.split(' ') ?? []
  return ids.map((id) => document.querySelector(`[id="${id}"]`)?.textContent ?? '').join(' ')
}
