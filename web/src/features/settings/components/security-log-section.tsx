import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import { t } from '../texts'

export function SecurityLogSection(): ReactNode {
  return (
    <Section
      isCompact
      title={t.securityLog}
      lead={t.signInsRefusedRequestsTokensApprovalsAnd}
      action={<Link to="/settings/security-log">{t.openTheLog}</Link>}
    />
  )
}
