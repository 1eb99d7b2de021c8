import { type ComponentType, type ReactNode, Suspense, lazy } from 'react'

/** A part that few need at once, such as a dialog: its code is loaded when it is shown first. */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): (props: Props) => ReactNode {
  const Part = lazy(async () => ({ default: (await load()) as ComponentType<object> }))
  return function Later(props: Props): ReactNode {
    return (
      <Suspense>
        <Part {...props} />
      </Suspense>
    )
  }
}
