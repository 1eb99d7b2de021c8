import { t } from './texts'

let title = ''
let waiting = 0

/** The title of the page, behind the number of rooms that wait for the person. */
export function setPageTitle(next: string | null): void {
  title = next === null ? 'Greenroom' : t.greenroom(next)
  show()
}

export function setTitleBadge(count: number): void {
  waiting = count
  show()
}

function show(): void {
  if (title === '') return
  document.title = waiting > 0 ? `(${waiting}) ${title}` : title
}
