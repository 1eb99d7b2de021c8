import { expect, it } from 'vitest'
import { personName } from './person-name'

it('b25_the_person_of_this_machine_is_you_and_others_have_their_names', () => {
  expect([personName('local'), personName('ann')]).toEqual(['You', 'ann'])
})
