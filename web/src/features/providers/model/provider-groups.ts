import type { Provider } from '@/lib/api/types'
import { inOrder } from '@/lib/providers'
import { t } from '../texts'

export interface ProviderGroup {
  title: string
  lead: string
  providers: Provider[]
}

/** The demo agent needs nothing, so it is not listed. */
export function groupsOf(providers: readonly Provider[]): ProviderGroup[] {
  const of = (kind: Provider['kind']): Provider[] => inOrder(providers.filter((provider) => provider.kind === kind))
  return [
    { title: t.modelApis, lead: t.modelApisNeedAKey, providers: of('api') },
    { title: t.programs, lead: t.programsUseTheKeyOfTheirApi, providers: of('program') },
    { title: t.otherServers, lead: t.serversWithChatCompletions, providers: of('endpoint') },
  ]
}

/** Where its key or address comes from, in a few words. */
export function sourceWords(source: Provider['source']): string | null {
  if (!source) return null
  return { environment: t.fromTheEnvironment, configuration: t.fromTheConfiguration, settings: t.fromTheSettings, found: t.foundOnThisMachine }[source]
}
