import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Skill } from '@/lib/api/types'
import { type Tab, tabs } from '../model/tabs'
import { t } from '../texts'
import styles from '@/components/ui/tabs.module.css'

const words: Record<Tab, string> = { get edit() { return t.edit }, get files() { return t.files }, get versions() { return t.versionsTitle }, get training() { return t.training } }

export function SkillTabs({ skill, current }: { skill: Skill; current: Tab }): ReactNode {
  return (
    <nav className={styles.tabs} aria-label={t.partsOfTheSkill}>
      {tabs.map((tab) => (
        <Link
          key={tab}
          to="/skills/$name"
          params={{ name: skill.name }}
          search={tab === 'edit' ? {} : { tab }}
          className={styles.tab}
          activeOptions={{ exact: true, includeSearch: true }}
          aria-current={tab === current ? 'page' : undefined}
        >
          {words[tab]}
          {tab === 'files' && skill.files.length > 0 && <span className={styles.count}>{skill.files.length}</span>}
        </Link>
      ))}
    </nav>
  )
}
