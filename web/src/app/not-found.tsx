import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { PageNote } from '@/components/layout/page-note'
import { t } from './texts'

export function NotFound(): ReactNode {
  return (
    <PageNote title={t.pageNotFound}>
      <p>
        <Link to="/">{t.goToYourLastRoom}</Link>
      </p>
    </PageNote>
  )
}
