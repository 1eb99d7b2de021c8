import { Link } from '@tanstack/react-router'
import { ArrowLeft } from 'lucide-react'
import type { ReactNode } from 'react'
import styles from './skill-page.module.css'

export function BackToSkills(): ReactNode {
  return (
    <Link to="/skills" className={styles.back}>
      <ArrowLeft size={16} aria-hidden />
      Skills
    </Link>
  )
}
