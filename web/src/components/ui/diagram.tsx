import { Code, Workflow } from 'lucide-react'
import { type ReactNode, memo, useEffect, useState } from 'react'
import { type DiagramColours, drawDiagram, drawnBefore } from '@/lib/diagram'
import { useIsDark } from '@/lib/theme'
import { IconButton } from './button'
import { CodeBlock } from './code-block'
import { CopyButton } from './copy-button'
import { t } from '../texts'
import styles from './diagram.module.css'

/** A diagram as a picture, with its text at hand; only the text while it grows or where it cannot be drawn. */
export const Diagram = memo(function Diagram({ source, isWhole }: { source: string; isWhole: boolean }): ReactNode {
  const [isText, setIsText] = useState(false)
  const picture = usePicture(isWhole ? source : null)
  if (!picture) return <CodeBlock code={source} language="mermaid" isWhole={isWhole} />
  return (
    <figure className={styles.diagram}>
      <div className={styles.bar}>
        <span>{t.diagram}</span>
        <IconButton label={isText ? t.showThePicture : t.showTheText} className={styles.button} onClick={() => setIsText(!isText)}>
          {isText ? <Workflow size={15} aria-hidden /> : <Code size={15} aria-hidden />}
        </IconButton>
        <CopyButton text={() => source} label={t.copyTheTextOfTheDiagram} className={styles.button} />
      </div>
      {/* A large one scrolls inside; the keyboard needs a way in to do that. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className={styles.scroll} tabIndex={0} role="region" aria-label={t.diagramTitle}>
        {isText ? <pre>{source}</pre> : <img src={picture} alt={t.diagramItsTextCanBeShownInstead} />}
      </div>
    </figure>
  )
})

function usePicture(source: string | null): string | null {
  const isDark = useIsDark()
  const [drawn, setDrawn] = useState<{ isDark: boolean; picture: string | null } | null>(null)

  useEffect(() => {
    if (source === null) return
    let isCurrent = true
    void drawDiagram(source, pageColours()).then((picture) => isCurrent && setDrawn({ isDark, picture }))
    return () => {
      isCurrent = false
    }
  }, [source, isDark])

  if (source === null) return null
  // In a list that forgets what is out of sight, one that comes back must not grow again under the reader.
  return drawn?.isDark === isDark ? drawn.picture : drawnBefore(source, pageColours())
}

/** A picture knows nothing of the page's colours: they go along with it. */
function pageColours(): DiagramColours {
  // A token may hold `light-dark()`, which only the colour of an element resolves.
  const probe = document.body.appendChild(document.createElement('i'))
  // For those who want less motion every transition takes a moment, at whose start the colour is still the one before.
  probe.style.transitionProperty = 'none'
  const token = (name: string): string => {
    probe.style.color = `var(--${name})`
    return getComputedStyle(probe).color
  }
  const border = token('line-strong')
  const colours = { bg: token('surface'), fg: token('ink'), line: border, accent: token('accent'), muted: token('ink-faint'), surface: token('sunken'), border }
  probe.remove()
  return colours
}
