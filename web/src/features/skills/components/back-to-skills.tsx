import { Link } from '@tanstack/react-router'
import { ArrowLeft } from 'lucide-react'
import type { ReactNode } from 'react'
import { t } from '../texts'
import quietLink from '@/components/ui/quiet-link.module.css'

export function BackToSkills(): ReactNode {
  return (
    <Link to="/skills" className={quietLink.link}>
      <ArrowLeft size={16} aria-hidden />
      {t.skills}
    </Link>
  )
}
