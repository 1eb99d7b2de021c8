import { expect, it } from 'vitest'
import { ApiError } from '@/lib/api/client'
import { problemOf } from './problems'

it('is told beside the key that it is about', () => {
  expect(problemOf(new ApiError('`/command` does not fit: it is empty', 'unprocessable', 422, '/command'))).toEqual({ place: 'command', text: 'It is empty.' })
  expect(problemOf(new ApiError('name: 1 to 64 letters', 'unprocessable', 422, '/name'))).toEqual({ place: 'name', text: '1 to 64 letters.' })
  expect(problemOf(new ApiError('timeout: it must be a number of milliseconds', 'invalid_request', 400))).toEqual({ place: 'timeout', text: 'It must be a number of milliseconds.' })
  expect(problemOf(new ApiError('There is one of this name.', 'conflict', 409))).toEqual({ place: null, text: 'There is one of this name.' })
})
