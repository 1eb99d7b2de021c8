import { describe, expect, it } from 'vitest'
import { bytes, count, dollars, duration, position, sentence } from './format'

describe('figures for people', () => {
  it.each([
    [0, '0 ms'],
    [840, '840 ms'],
    [3210, '3.2 s'],
    [65_000, '1 min 05 s'],
    [7_800_000, '2 h 10 min'],
  ])('%d ms is %s', (millis, text) => expect(duration(millis)).toBe(text))

  it.each([
    [980, '980'],
    [12_400, '12.4k'],
    [1000, '1k'],
    [3_140_000, '3.1M'],
  ])('%d is %s', (value, text) => expect(count(value)).toBe(text))

  it.each([
    [0, '$0'],
    [0.00001, '< $0.0001'],
    [0.0042, '$0.0042'],
    [0.123, '$0.123'],
    [12.5, '$12.50'],
  ])('%d dollars are %s', (value, text) => expect(dollars(value)).toBe(text))

  it('groups positions by thousands', () => {
    expect(position(999)).toBe('999')
    expect(position(1_234_567)).toBe('1\u2009234\u2009567')
  })

  it('counts bytes', () => expect([bytes(12), bytes(1500), bytes(2_000_000)]).toEqual(['12 B', '1.5 kB', '2 MB']))
})

it('makes a sentence of what a program said', () => {
  expect(sentence('the server "x" is gone')).toBe('The server "x" is gone.')
  expect(sentence('Try again!')).toBe('Try again!')
  expect(sentence('')).toBe('')
})
