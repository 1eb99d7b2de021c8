import { describe, expect, it } from 'vitest'
import { ApiError } from '@/lib/api/client'
import { problemOf } from './problems'

const refused = (detail: string, pointer: string | null = null): ApiError => new ApiError(detail, 'invalid_request', 400, pointer)

describe('what the server refuses', () => {
  it.each([
    ['`/name` does not fit: a name must not be empty.', '/name', 'name', null, 'A name must not be empty.'],
    ['`/limits/turns` does not fit: invalid type: string "x", expected u32.', '/limits/turns', 'limits', 'turns', 'Invalid type: string "x", expected u32.'],
    ['this server has no skill "foo"; it has none', '/skills', 'skills', null, 'This server has no skill "foo"; it has none.'],
    ['provider: this server has no provider "x"; it has: scripted.', '/provider', 'provider', null, 'This server has no provider "x"; it has: scripted.'],
  ])('is said beside its field: %s', (detail, pointer, place, part, text) => {
    expect(problemOf(refused(detail, pointer))).toEqual({ place, part, text })
  })

  it('is found by its first word where there is no pointer', () => {
    expect(problemOf(refused('limits: a limit is at least 1.'))).toMatchObject({ place: 'limits', part: null })
  })

  it('belongs to the whole form where no field is named, with every word of it', () => {
    const text = 'model, skills, mcp_servers and tools take one-line names of 1 to 200 characters, at most 200 each.'
    expect(problemOf(refused(text))).toEqual({ place: null, part: null, text })
    expect(problemOf(new ApiError('The server cannot be reached.', 'offline', 0))).toMatchObject({ place: null })
  })
})
