import { createStore } from '@/lib/store'

/** On a narrow screen the rail lies over the page and is called in. */
export const drawerStore = createStore(false)
