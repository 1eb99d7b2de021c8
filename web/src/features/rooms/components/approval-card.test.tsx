// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { afterEach, expect, it, vi } from 'vitest'
import type { Approval } from '@/feed/state'
import { api } from '@/lib/api/client'
import { ApprovalCard } from './approval-card'

// There are no workers here; code without colours is code all the same.
vi.mock('@/lib/highlight', () => ({ highlight: () => Promise.resolve(null) }))

afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
})

function renderCard(name: string, input: unknown, isQuestion = false, changes: Partial<Approval> = {}): HTMLElement {
  const approval: Approval = {
    id: 'approval-1',
    runId: 'run-1',
    toolUseId: null,
    name,
    input,
    requestedAt: '2026-01-01T00:00:00Z',
    expiresAt: '2999-01-01T00:00:00Z',
    isQuestion,
    pattern: null,
    decision: null,
    changedInput: undefined,
    isRemembered: false,
    partsBefore: 0,
  }
  const { container } = render(
    <QueryClientProvider client={new QueryClient()}>
      <ApprovalCard approval={{ ...approval, ...changes }} agent="Reviewer" isLive />
    </QueryClientProvider>,
  )
  return container
}

const hidden = /[\u200B\u202E\u{E0041}]/u

it('l9_a_command_shows_what_cannot_be_seen', () => {
  const card = renderCard('Bash', { command: 'cat \u202Etxt.exe\u200B', description: 'read\u{E0041}' })
  expect(card.textContent).toContain('cat ⟨U+202E⟩txt.exe⟨U+200B⟩')
  expect(card.textContent).toContain('read⟨U+E0041⟩')
  expect(card.textContent).not.toMatch(hidden)
  expect(screen.getByTitle('right-to-left override').textContent).toBe('⟨U+202E⟩')
  expect(screen.getByRole('note').textContent).toContain('3 characters')
})

it('l9_names_of_files_and_tools_show_what_cannot_be_seen', () => {
  const card = renderCard('Ed\u200Bit', { file_path: 'src/\u202Esr.niam', old_string: 'a', new_string: 'a\u{E0041}' })
  for (const shown of ['Allow Reviewer to run Ed⟨U+200B⟩it?', 'src/⟨U+202E⟩sr.niam', 'a⟨U+E0041⟩']) expect(card.textContent).toContain(shown)
  expect(card.textContent).not.toMatch(hidden)
  expect(screen.getByRole('region', { name: 'Approval for Ed⟨U+200B⟩it' })).toBeTruthy()
})

it('l9_keys_and_values_of_any_input_show_what_cannot_be_seen', () => {
  const card = renderCard('call', { 'a\u200B': ['b\u202E'] })
  expect(card.textContent).toContain('"a⟨U+200B⟩"')
  expect(card.textContent).toContain('"b⟨U+202E⟩"')
})

it('l9_questions_and_their_options_show_what_cannot_be_seen', () => {
  renderCard('ask_user', { question: 'Delete \u202Etxt.exe?', options: ['y\u200Bes', 'no'] }, true)
  expect(screen.getByLabelText('Delete ⟨U+202E⟩txt.exe?')).toBeTruthy()
  expect(screen.getByRole('button', { name: 'y⟨U+200B⟩es' })).toBeTruthy()
})

it('says nothing where everything can be seen', () => {
  renderCard('Bash', { command: 'ls -l 👩‍💻\n\techo 漢字' })
  expect(screen.queryByRole('note')).toBeNull()
})

it('edits hidden characters as escapes, and sends what was meant', async () => {
  const sent = vi.spyOn(api, 'POST').mockResolvedValue({ response: new Response(null, { status: 204 }) } as never)
  renderCard('Bash', { command: 'cat \u202Etxt' })
  fireEvent.click(screen.getByRole('button', { name: 'Edit' }))
  const field = screen.getByLabelText<HTMLTextAreaElement>('Input, as JSON')
  expect(field.value).toContain('"cat \\u202etxt"')
  fireEvent.change(field, { target: { value: field.value.replace('cat', 'head') } })
  fireEvent.click(screen.getByRole('button', { name: 'Allow edited' }))
  await waitFor(() => expect(sent).toHaveBeenCalled())
  expect(sent.mock.calls[0]?.[1]).toMatchObject({ body: { decision: 'allow', input: { command: 'head \u202Etxt' } } })
})

it('what ran is shown where the input was edited', () => {
  const card = renderCard('Bash', { cmd: 'rm -rf /tmp/x' }, false, { decision: 'allow', changedInput: { cmd: 'echo safe' } })
  expect(card.textContent).toContain('Allowed with edited input:')
  expect(card.textContent).toMatch(/−.*rm -rf/)
  expect(card.textContent).toMatch(/\+.*echo safe/)
})

it('each question of several gets its own answer', async () => {
  const sent = vi.spyOn(api, 'POST').mockResolvedValue({ response: new Response(null, { status: 204 }) } as never)
  renderCard('AskUserQuestion', { questions: [{ question: 'Which library?', options: [{ label: 'React' }, { label: 'Solid' }] }, { question: 'Which port?', options: [] }] }, true)
  fireEvent.click(screen.getByRole('button', { name: 'Solid' }))
  expect(sent).not.toHaveBeenCalled()
  fireEvent.change(screen.getByLabelText('Which port?'), { target: { value: '8080' } })
  fireEvent.click(screen.getByRole('button', { name: 'Send answers' }))
  await waitFor(() => expect(sent).toHaveBeenCalled())
  expect(sent.mock.calls[0]?.[1]).toMatchObject({ body: { decision: 'allow', input: { answers: { 'Which library?': 'Solid', 'Which port?': '8080' } } } })
})

it('an option of the only question answers it with one click', async () => {
  const sent = vi.spyOn(api, 'POST').mockResolvedValue({ response: new Response(null, { status: 204 }) } as never)
  renderCard('ask_user', { question: 'Go on?', options: ['yes', 'no'] }, true)
  fireEvent.click(screen.getByRole('button', { name: 'yes' }))
  await waitFor(() => expect(sent).toHaveBeenCalled())
  expect(sent.mock.calls[0]?.[1]).toMatchObject({ body: { decision: 'allow', input: { answer: 'yes' } } })
})
