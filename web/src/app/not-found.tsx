import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { PageNote } from '@/components/layout/page-note'

export function NotFound(): ReactNode {
  return (
    <PageNote title="Page not found">
      <p>
        <Link to="/">Go to your last room</Link>
      </p>
    </PageNote>
  )
}
