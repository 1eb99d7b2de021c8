import { LogOut } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Section } from '@/components/ui/section'
import { explain } from '@/lib/api/client'
import { signOut } from '@/lib/api/session'
import { notify } from '@/lib/notices'

export function SignOutSection({ name }: { name: string | null }): ReactNode {
  const [isBusy, setIsBusy] = useState(false)
  const leave = async (): Promise<void> => {
    setIsBusy(true)
    try {
      await signOut()
      // A new page: nothing that was read is left in this one.
      location.assign('/')
    } catch (error) {
      notify(`You are still signed in. ${explain(error)}`, 'problem')
      setIsBusy(false)
    }
  }
  return (
    <Section
      isCompact
      title="Signed in"
      lead={name ? `As ${name}, in this browser.` : 'In this browser.'}
      action={
        <Button isBusy={isBusy} onClick={() => void leave()}>
          <LogOut size={15} aria-hidden />
          Sign out
        </Button>
      }
    />
  )
}
