import { t } from './texts'

/** The name of the operator, who never made an account. */
const localOwner = 'local'

export function personName(name: string): string {
  return name === localOwner ? t.you : name
}
