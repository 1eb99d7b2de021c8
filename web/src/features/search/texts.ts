import { texts } from '@/lib/i18n'
import { en } from './texts/en'

/** What people read in this area. */
export const t = texts(en)
