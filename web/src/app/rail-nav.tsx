import { Link } from '@tanstack/react-router'
import { Activity, Bot, ChartColumn, GraduationCap, Play, Plug, Settings, ShieldQuestionMark as ShieldQuestion } from 'lucide-react'
import type { ReactNode } from 'react'
import { drawerStore } from '@/components/layout/drawer-store'
import { IconButton } from '@/components/ui/button'
import { askForTask } from '@/lib/execute-request'
import styles from './rail-nav.module.css'

const pages = [
  { to: '/approvals', label: 'Approvals', Icon: ShieldQuestion },
  { to: '/agents', label: 'Agents', Icon: Bot },
  { to: '/skills', label: 'Skills', Icon: GraduationCap },
  { to: '/mcp-servers', label: 'MCP servers', Icon: Plug },
  { to: '/runs', label: 'Runs', Icon: Activity },
  { to: '/usage', label: 'Usage', Icon: ChartColumn },
  { to: '/settings', label: 'Settings', Icon: Settings },
] as const

/** The pages other than rooms. */
export function RailNav({ waiting }: { waiting: number }): ReactNode {
  const leave = (): void => drawerStore.set(false)
  return (
    <ul className={styles.pages} aria-label="Pages">
      {pages.map(({ to, label, Icon }) => (
        <li key={to}>
          <Link to={to} className={styles.page} onClick={leave}>
            <Icon size={16} aria-hidden />
            {label}
            {to === '/approvals' && waiting > 0 && (
              <span className={styles.count}>
                {waiting}
                <span className="visually-hidden"> waiting</span>
              </span>
            )}
          </Link>
          {to === '/agents' && (
            <IconButton
              label="Run a task"
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
