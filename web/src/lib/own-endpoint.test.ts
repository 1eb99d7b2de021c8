import { describe, expect, it } from 'vitest'
import { isOwnEndpoint } from './own-endpoint'

const page = 'http://127.0.0.1:7878/rooms/1'

describe('an endpoint of the own server', () => {
  it.each([
    '/api',
    '/api/execute/agent/1?message=hi',
    '../api/execute/agent/1',
    'HTTP://127.0.0.1:7878/API/runs',
    '//127.0.0.1:7878/api/runs',
    'http:/api/runs',
    'http:api/runs/../../../api/runs',
    'http://someone@127.0.0.1:7878/api',
    'https://127.0.0.1:7878/api',
    'http://2130706433:7878/api',
    'http://localhost:7878/api',
    'http://LOCALHOST.:7878/api',
    'http://a.localhost:7878/api',
    'http://[::1]:7878/api',
    'http://[::ffff:127.0.0.1]:7878/api',
    'http://0.0.0.0:7878/api',
    '/./api/runs',
    '/x/../api/runs',
    '/%2e/api',
    '/x/%2e%2e/api',
    '/x/%252e%252e/api',
    '/.//api',
    '\\api\\runs',
    '\\\\127.0.0.1:7878\\api',
    '/%61pi/runs',
    '/%2561%70%69',
    '/a\tp\ni/runs',
    ' /api ',
    '/api;x=1/runs',
    '/ａｐｉ/runs',
    '/a%C2%ADpi',
    '/%5Capi',
    '/%2Fapi',
    '/api?x#y',
    '/mcp',
    '/sse',
    '/metrics',
    '/sign-in#code=theirs',
    '/%zz',
    'http://[broken',
  ])('is found in %j', (href) => {
    expect(isOwnEndpoint(href, page)).toBe(true)
  })

  it.each([
    '/',
    '/rooms/2',
    '/runs/1?from=/api',
    '/rooms/api',
    '/apiary',
    '/mcp-servers',
    '/docs',
    '#api',
    'https://example.org/api/runs',
    '//example.org/api',
    'http://127.0.0.1:3000/api/users',
    'http://127.0.0.1.example.org:7878/api',
    'http://127.0.0.1:7878@example.org/api',
    'mailto:api@example.org',
  ])('is not seen in %j', (href) => {
    expect(isOwnEndpoint(href, page)).toBe(false)
  })

  it('is found by the own name, behind a proxy too', () => {
    const proxied = 'https://agents.example.org/rooms/1'
    expect(isOwnEndpoint('http://agents.example.org/api', proxied)).toBe(true)
    expect(isOwnEndpoint('https://agents.example.org:443/api', proxied)).toBe(true)
    expect(isOwnEndpoint('http://localhost/api', proxied)).toBe(false)
  })
})
