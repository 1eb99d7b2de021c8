/** The name of the operator, who never made an account. */
const localOwner = 'local'

export function personName(name: string): string {
  return name === localOwner ? 'You' : name
}
