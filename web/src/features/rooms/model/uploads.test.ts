import { describe, expect, it } from 'vitest'
import { type Upload, accepted, readinessOf } from './uploads'

const file = (name: string, size: number): File => ({ name, size }) as File
const upload: Upload = { key: 1, name: 'a', size: 1, preview: null, share: 0, problem: null, attachment: null }
const attachment = { name: 'a', media_type: 'text/plain', url: '/api/uploads/1' }

describe('files that are to go with a message', () => {
  it('are refused with a reason where the server would refuse them', () => {
    const { taken, problems } = accepted([file('fine.txt', 10), file('film.mp4', 26_000_000), file('nothing', 0)], 0)
    expect(taken.map(({ name }) => name)).toEqual(['fine.txt'])
    expect(problems).toEqual([expect.stringMatching(/^film\.mp4 is larger than 25 MB/), 'nothing is empty.'])
  })

  it('are no more than a message takes', () => {
    const { taken, problems } = accepted([file('a', 1), file('b', 1), file('c', 1)], 30)
    expect(taken).toHaveLength(2)
    expect(problems).toEqual(['A message can have 32 files; 1 were not added.'])
  })

  it('can go when all of them are there', () => {
    expect(readinessOf([])).toBe('nothing')
    expect(readinessOf([upload, { ...upload, attachment }])).toBe('sending')
    expect(readinessOf([{ ...upload, problem: 'lost' }, { ...upload, attachment }])).toBe('failed')
    expect(readinessOf([{ ...upload, attachment }])).toBe('ready')
  })
})
