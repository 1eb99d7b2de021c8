import { expect, it } from 'vitest'
import { parseAnsi } from './ansi'

const esc = '\u001b'
const brief = (text: string): unknown[] => parseAnsi(text).map(({ text: part, color, background, isBold }) => [part, color, background, isBold].filter((value) => value !== null && value !== false))

it('colors and weights begin and end', () => {
  expect(brief(`a${esc}[31mred${esc}[1mbold${esc}[22;39mb${esc}[0mc`)).toEqual([['a'], ['red', 1], ['bold', 1, true], ['bc']])
  expect(brief(`${esc}[92;41mx${esc}[mx`)).toEqual([['x', 10, 1], ['x']])
})

it('256 colors and any color', () => {
  expect(brief(`${esc}[38;5;9mx`)).toEqual([['x', 9]])
  expect(brief(`${esc}[38;5;196mx`)).toEqual([['x', 'rgb(255 0 0)']])
  expect(brief(`${esc}[38;5;244mx`)).toEqual([['x', 'rgb(128 128 128)']])
  expect(brief(`${esc}[48;2;1;2;300;1mx`)).toEqual([['x', 'rgb(1 2 255)', true]])
})

it('everything else that a terminal obeys is left out, and nothing of the text', () => {
  expect(brief(`${esc}[2J${esc}[1;1Ha${esc}]0;title\u0007b${esc}[?25lc\u0008d\u0000`)).toEqual([['abcd']])
  expect(brief('tab\tand\nline')).toEqual([['tab\tand\nline']])
  expect(brief(`half a sequence ${esc}[3`)).toEqual([[`half a sequence ${esc}[3`]])
})

it('a carriage return begins the line again', () => {
  expect(brief('10%\r50%\r100%\r\nnext')).toEqual([['100%\nnext']])
  expect(brief('10%\r50%\r')).toEqual([['50%']])
})
