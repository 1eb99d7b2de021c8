import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'

export function SecurityLogSection(): ReactNode {
  return (
    <Section
      isCompact
      title="Security log"
      lead="Sign-ins, refused requests, tokens, approvals and changes. For owners and admins."
      action={<Link to="/settings/security-log">Open the log</Link>}
    />
  )
}
