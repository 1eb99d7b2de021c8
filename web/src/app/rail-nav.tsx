import { Link } from '@tanstack/react-router'
import { Activity, Bot, ChartColumn, FolderOpen, GraduationCap, Play, Plug, Settings, ShieldQuestionMark as ShieldQuestion } from 'lucide-react'
import type { ReactNode } from 'react'
import { drawerStore } from '@/components/layout/drawer-store'
import { IconButton } from '@/components/ui/button'
import { askForTask } from '@/lib/execute-request'
import { t } from './texts'
import styles from './rail-nav.module.css'

const pages = [
  { to: '/approvals', get label() { return t.approvals }, Icon: ShieldQuestion },
  { to: '/projects', get label() { return t.projects }, Icon: FolderOpen },
  { to: '/agents', get label() { return t.agents }, Icon: Bot },
  { to: '/skills', get label() { return t.skills }, Icon: GraduationCap },
  { to: '/mcp-servers', get label() { return t.mcpServers }, Icon: Plug },
  { to: '/runs', get label() { return t.runs }, Icon: Activity },
  { to: '/usage', get label() { return t.usage }, Icon: ChartColumn },
  { to: '/settings', get label() { return t.settings }, Icon: Settings },
] as const

/** The pages other than rooms. */
export function RailNav({ waiting }: { waiting: number }): ReactNode {
  const leave = (): void => drawerStore.set(false)
  return (
    <ul className={styles.pages} aria-label={t.pages}>
      {pages.map(({ to, label, Icon }) => (
        <li key={to}>
          <Link to={to} className={styles.page} onClick={leave}>
            <Icon size={16} aria-hidden />
            {label}
            {to === '/approvals' && waiting > 0 && (
              <span className={styles.count}>
                {waiting}
                <span className="visually-hidden"> {t.waiting}</span>
              </span>
            )}
          </Link>
          {to === '/agents' && (
            <IconButton
              label={t.runATask}
              onClick={() => {
                leave()
                askForTask()
              }}
            >
              <Play size={15} aria-hidden />
            </IconButton>
          )}
        </li>
      ))}
    </ul>
  )
}
