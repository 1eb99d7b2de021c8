// @vitest-environment jsdom
import { beforeEach, describe, expect, it } from 'vitest'
import { nextPage, pendingCode, takeCode } from './sign-in-link'

beforeEach(() => history.replaceState(null, '', '/'))

describe('the code of a sign-in link', () => {
  it('is taken out of the address and the history', () => {
    history.replaceState({ page: 1 }, '', '/sign-in#code=abc-123_X')
    const entries = history.length
    expect(takeCode(window)).toBe('abc-123_X')
    expect(location.href).toBe(`${location.origin}/sign-in`)
    expect(history.length).toBe(entries)
    expect(takeCode(window)).toBeNull()
  })

  it('leaves the next page behind', () => {
    history.replaceState(null, '', '/sign-in?next=%2Fruns#code=abc')
    expect(takeCode(window)).toBe('abc')
    expect(location.search).toBe('?next=%2Fruns')
    history.replaceState(null, '', '/sign-in#code=abc&next=/rooms/1')
    expect(takeCode(window)).toBe('abc')
    expect(location.pathname + location.search + location.hash).toBe('/sign-in?next=%2Frooms%2F1')
  })

  it('is looked for on this page only, and may be missing', () => {
    history.replaceState(null, '', '/rooms/1#code=abc')
    expect(takeCode(window)).toBeNull()
    expect(location.hash).toBe('#code=abc')
    history.replaceState(null, '', '/sign-in#code=')
    expect(takeCode(window)).toBeNull()
    expect(location.hash).toBe('')
  })

  it('is taken from a link that is pasted while the page is open', () => {
    history.replaceState(null, '', '/sign-in#code=second')
    window.dispatchEvent(new HashChangeEvent('hashchange'))
    expect(pendingCode.get()).toBe('second')
    expect(location.hash).toBe('')
  })
})

describe('the page after signing in', () => {
  const origin = 'http://127.0.0.1:7878'

  it.each(['/rooms/1?m=3#x', '/', '/runs'])('may be %s', (next) => {
    expect(nextPage(next, origin)).toBe(next)
  })

  it.each([
    'https://example.org',
    '//example.org',
    '/\\example.org',
    '\\\\example.org',
    '/\t/example.org',
    '/.//example.org',
    '/x/..//example.org',
    'javascript:alert(1)',
    'rooms/1',
    '/api/execute/agent/1?message=hi',
    '/sign-in',
    '',
    undefined,
    ['/rooms/1'],
  ])('is the first one instead of %j', (next) => {
    expect(nextPage(next, origin)).toBe('/')
  })
})
