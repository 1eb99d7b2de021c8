import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { agentTemplates } from '@/lib/agent-templates'
import { t } from '../texts'
import styles from './template-choice.module.css'

/** Six good beginnings; the form below is filled in with what was chosen. */
export function TemplateChoice(): ReactNode {
  return (
    <section aria-label={t.templates} className={styles.templates}>
      <h2>{t.startFromATemplate}</h2>
      <ul>
        {agentTemplates().map(({ id, name, does }) => (
          <li key={id}>
            <Link to="/agents/new" search={(before) => ({ ...before, template: id })} replace activeOptions={{ includeSearch: true, exact: true }} className={styles.template}>
              <strong>{name}</strong>
              <span>{does}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
