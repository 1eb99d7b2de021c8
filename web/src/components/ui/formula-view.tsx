import { type ReactNode, memo, useEffect, useState } from 'react'
import type { Formula } from '@/lib/math-spans'
import { drawFormula, formulaDrawn } from '@/lib/mathml'
import styles from './formula-view.module.css'

/** A formula; its TeX until it is drawn, and where it cannot be. */
export const FormulaView = memo(function FormulaView({ tex, isDisplay }: Formula): ReactNode {
  const [loaded, setLoaded] = useState<ReactNode>(null)
  const drawn = formulaDrawn(tex, isDisplay) ?? loaded

  useEffect(() => {
    let isCurrent = true
    void drawFormula(tex, isDisplay).then(
      (formula) => isCurrent && setLoaded(formula),
      // The TeX stays, which can be read too.
      () => {},
    )
    return () => {
      isCurrent = false
    }
  }, [tex, isDisplay])

  if (!drawn) return <code>{tex}</code>
  return (
    <span className={isDisplay ? styles.display : undefined} title={tex}>
      {drawn}
    </span>
  )
})
