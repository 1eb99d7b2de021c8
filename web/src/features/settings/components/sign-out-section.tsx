import { useMutation } from '@tanstack/react-query'
import { LogOut } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Section } from '@/components/ui/section'
import { explain } from '@/lib/api/client'
import { signOut } from '@/lib/api/session'
import { notify } from '@/lib/notices'
import { t } from '../texts'

export function SignOutSection({ name }: { name: string | null }): ReactNode {
  const leave = useMutation({
    mutationFn: signOut,
    // A new page has nothing in memory of what this one has read.
    onSuccess: () => location.assign('/'),
    onError: (error) => notify(t.youAreStillSignedIn(explain(error)), 'problem'),
  })
  return (
    <Section
      isCompact
      title={t.signedIn}
      lead={name ? t.asInThisBrowser(name) : t.inThisBrowser}
      action={
        <Button isBusy={leave.isPending || leave.isSuccess} onClick={() => leave.mutate()}>
          <LogOut size={15} aria-hidden />
          {t.signOut}
        </Button>
      }
    />
  )
}
