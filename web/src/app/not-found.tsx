import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { PageNote } from '@/components/layout/page-note'

export function NotFound(): ReactNode {
  return (
    <PageNote title="There is no such page">
      <p>
        The address may be from another version. <Link to="/">Go to your last room</Link>
      </p>
    </PageNote>
  )
}
