// @vitest-environment jsdom
import { expect, it } from 'vitest'
import { setPageTitle, setTitleBadge } from './page-title'

it('has how many rooms wait before the name of the page, whichever is known first', () => {
  setTitleBadge(2)
  setPageTitle('Lobby')
  expect(document.title).toBe('(2) Lobby · Greenroom')
  setTitleBadge(0)
  expect(document.title).toBe('Lobby · Greenroom')
  setPageTitle(null)
  expect(document.title).toBe('Greenroom')
})
