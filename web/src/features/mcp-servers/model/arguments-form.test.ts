import { describe, expect, it } from 'vitest'
import { argumentsFromJson, argumentsOf, fieldsOf } from './arguments-form'

const schema = {
  type: 'object',
  required: ['path', 'count'],
  properties: {
    path: { type: 'string', description: 'Where' },
    count: { type: 'integer' },
    deep: { type: 'boolean', default: true },
    mode: { enum: ['fast', 'slow'] },
    tags: { type: 'array', items: { type: 'string' } },
  },
}

const fields = fieldsOf(schema) ?? []

describe('a form for a tool', () => {
  it('has a field for each argument, as its schema says', () => {
    expect(fields.map(({ name, kind, isRequired, initial }) => ({ name, kind, isRequired, initial }))).toEqual([
      { name: 'path', kind: 'text', isRequired: true, initial: '' },
      { name: 'count', kind: 'number', isRequired: true, initial: '' },
      { name: 'deep', kind: 'boolean', isRequired: false, initial: 'true' },
      { name: 'mode', kind: 'choice', isRequired: false, initial: '' },
      { name: 'tags', kind: 'json', isRequired: false, initial: '' },
    ])
  })

  it('sends what was typed in the types that are wanted, and leaves out what is empty', () => {
    expect(argumentsOf(fields, { path: 'src', count: '3', tags: '["a"]' })).toEqual({ values: { path: 'src', count: 3, deep: true, tags: ['a'] } })
    expect(argumentsOf(fields, { path: '', count: '0', deep: '' })).toEqual({ values: { path: '', count: 0 } })
  })

  it('says beside each field what is wrong with it', () => {
    expect(argumentsOf(fields, { path: 'a', count: '', tags: '[' })).toEqual({ problems: { count: 'Required', tags: 'Not valid JSON.' } })
    expect(argumentsOf(fields, { path: 'a', count: 'many' })).toEqual({ problems: { count: 'Must be a number' } })
  })

  it('gives way to JSON where the schema says too little, and survives any schema', () => {
    expect(fieldsOf({ type: 'object' })).toEqual([])
    for (const odd of [null, true, 'x', [], {}, { properties: [] }]) expect(fieldsOf(odd)).toBeNull()
    expect(fieldsOf({ properties: { a: null, b: 7, c: { enum: [1, 2] } } })?.map(({ kind }) => kind)).toEqual(['json', 'json', 'json'])
    expect(argumentsFromJson('')).toEqual({ values: {} })
    expect(argumentsFromJson('{"a":1}')).toEqual({ values: { a: 1 } })
    expect(argumentsFromJson('[1]')).toHaveProperty('problems')
  })
})
