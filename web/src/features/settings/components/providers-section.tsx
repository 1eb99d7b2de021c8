import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Section } from '@/components/ui/section'
import { t } from '../texts'

export function ProvidersSection(): ReactNode {
  return <Section isCompact title={t.providers} lead={t.keysAddressesAndModels} action={<Link to="/settings/providers">{t.openProviders}</Link>} />
}
