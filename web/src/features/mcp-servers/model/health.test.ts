import { expect, it } from 'vitest'
import { addressOf, healthOf } from './health'
import type { McpStatus as Status } from '@/lib/api/types'

const status = (changes: Partial<Status>): Status => ({ state: 'ready', tools: 2, retry_in_ms: null, last_error: null, ...changes }) as Status
const of = (changes: Partial<Status>): ReturnType<typeof healthOf> => healthOf({ shadowed: false, problem: null, status: status(changes) })

it('says how a server is', () => {
  expect(of({})).toMatchObject({ tone: 'good', words: 'running, 2 tools' })
  expect(of({ tools: 1 }).words).toBe('running, 1 tool')
  expect(of({ state: 'resting', retry_in_ms: 2500, last_error: 'It died.' })).toEqual({ tone: 'wait', words: 'failed, retrying in 2.5 s', detail: 'It died.' })
  expect(of({ state: 'failed', last_error: 'It died.' })).toMatchObject({ tone: 'bad', detail: 'It died.' })
  expect(of({ state: 'stopped' })).toMatchObject({ tone: 'quiet', words: 'idle' })
})

it('says first why it is not used at all', () => {
  const problem = { code: 'mcp_config', message: 'needs the variable TOKEN' }
  expect(healthOf({ shadowed: false, problem, status: null })).toMatchObject({ tone: 'bad', detail: problem.message })
  expect(healthOf({ shadowed: false, disabled: true, problem, status: null }).words).toBe('off')
  expect(healthOf({ shadowed: true, problem: null, status: null }).words).toBe('not used')
})

it('shows what is started, or where it is', () => {
  expect(addressOf({ command: 'npx', args: ['-y', 'x'] })).toBe('npx -y x')
  expect(addressOf({ url: 'https://host/mcp' })).toBe('https://host/mcp')
})
