import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { Button } from '@/components/ui/button'
import loading from '@/components/ui/loading.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { Section } from '@/components/ui/section'
import { providersQuery } from '@/lib/api/queries'
import { groupsOf } from '../model/provider-groups'
import { NewProviderDialog } from './new-provider-dialog'
import { ProviderRow } from './provider-row'
import { t } from '../texts'
import styles from './providers-page.module.css'

/** What answers behind agents: keys, addresses, default models, and whether each works. */
export function ProvidersPage(): ReactNode {
  const { data: providers, error, refetch } = useQuery(providersQuery)
  const [isAdding, setIsAdding] = useState(false)
  const [open, setOpen] = useState<string | null>(null)
  return (
    <PageBody
      title={t.providers}
      width="narrow"
      back={<Link to="/settings">{t.settings}</Link>}
      actions={
        <Button look="primary" onClick={() => setIsAdding(true)}>
          <Plus size={15} aria-hidden />
          {t.addAServer}
        </Button>
      }
    >
      {error && !providers && <ProblemNote title={t.couldNotLoadProviders} error={error} onRetry={() => void refetch()} />}
      {!providers && !error && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
      {providers &&
        groupsOf(providers).map(({ title, lead, providers: listed }) => (
          <Section key={title} title={title} lead={lead}>
            {listed.length === 0 ? (
              <p className={styles.none}>{t.noneYet}</p>
            ) : (
              <ul className={styles.list} aria-label={title}>
                {listed.map((provider) => (
                  <ProviderRow
                    key={provider.id}
                    provider={provider}
                    isOpen={open === provider.id}
                    onToggle={() => setOpen(open === provider.id ? null : provider.id)}
                    onOpen={setOpen}
                  />
                ))}
              </ul>
            )}
          </Section>
        ))}
      {isAdding && <NewProviderDialog onClose={() => setIsAdding(false)} />}
    </PageBody>
  )
}
