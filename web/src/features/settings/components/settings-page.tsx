import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { sessionQuery } from '@/lib/api/session'
import { AboutSection } from './about-section'
import { DeveloperSection } from './developer-section'
import { LanguageSection } from './language-section'
import { NotificationsSection } from './notifications-section'
import { ProvidersSection } from './providers-section'
import { SecurityLogSection } from './security-log-section'
import { SignOutSection } from './sign-out-section'
import { ThemeSection } from './theme-section'
import { TokensSection } from './tokens-section'
import { t } from '../texts'

export function SettingsPage(): ReactNode {
  const session = useQuery(sessionQuery).data
  return (
    <PageBody title={t.settings} width="narrow">
      <ThemeSection />
      <LanguageSection />
      <NotificationsSection />
      <ProvidersSection />
      <TokensSection hasAccounts={session?.accounts ?? false} />
      <SecurityLogSection />
      <DeveloperSection />
      <AboutSection />
      {session?.accounts && <SignOutSection name={session.name ?? null} />}
    </PageBody>
  )
}
