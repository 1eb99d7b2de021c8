import { describe, expect, it } from 'vitest'
import { answerTo, answersIn, questionsIn } from './questions'

const claude = {
  questions: [
    { question: 'Which library?', header: 'Library', options: [{ label: 'React', description: 'the known one' }, { label: 'Solid' }], multiSelect: false },
    { question: 'Which port?', options: [] },
  ],
}

describe('questions of agents', () => {
  it('are read with their options, one by one', () => {
    expect(questionsIn(claude)).toEqual([
      { text: 'Which library?', header: 'Library', options: [{ label: 'React', description: 'the known one' }, { label: 'Solid', description: null }], allowsSeveral: false },
      { text: 'Which port?', header: null, options: [], allowsSeveral: false },
    ])
    expect(questionsIn({ question: 'Go on?', options: ['yes', 'no', 'yes'] })).toMatchObject([{ text: 'Go on?', options: [{ label: 'yes' }, { label: 'no' }] }])
  })

  it('are shown as they are where the shape is unknown', () => {
    expect(questionsIn({ strange: 1 })).toMatchObject([{ text: '{"strange":1}', options: [] }])
  })

  it('get each its own answer', () => {
    expect(answerTo(claude, questionsIn(claude), ['Solid', '8080'])).toEqual({ answers: { 'Which library?': 'Solid', 'Which port?': '8080' } })
    expect(answerTo({ question: 'Go on?' }, questionsIn({ question: 'Go on?' }), ['yes'])).toEqual({ answer: 'yes' })
  })

  it('are told afterwards with what was answered', () => {
    expect(answersIn({ answers: { 'Which library?': 'Solid', 'Which port?': '8080' } })).toBe('Solid; 8080')
    expect(answersIn({ answer: 'yes' })).toBe('yes')
    expect(answersIn(undefined)).toBe('')
  })
})
