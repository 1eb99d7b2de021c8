import { queryOptions } from '@tanstack/react-query'
import { answerOf, api, once } from './client'
import { queryKeys } from './query-keys'
import type { NewProvider, Provider, ProviderModel, ProviderSettings, ProviderTest } from './types'

/** Replaces the settings of a provider. A key that is left out stays, `null` removes it; no request ever returns one. */
export function saveProvider(id: string, settings: ProviderSettings): Promise<Provider> {
  return answerOf(api.PUT('/api/providers/{id}/settings', { params: { path: { id }, header: once() }, body: settings }))
}

/** The server's own key and address are used again; a provider that was added is deleted. */
export async function resetProvider(id: string): Promise<void> {
  await answerOf(api.DELETE('/api/providers/{id}/settings', { params: { path: { id }, header: once() } }))
}

/** A real and cheap call. */
export function testProvider(id: string): Promise<ProviderTest> {
  return answerOf(api.POST('/api/providers/{id}/test', { params: { path: { id } } }))
}

export function addProvider(provider: NewProvider): Promise<Provider> {
  return answerOf(api.POST('/api/providers', { params: { header: once() }, body: provider }))
}

/** What the provider itself lists. */
export function modelsQuery(id: string) {
  return queryOptions({
    queryKey: queryKeys.models(id),
    queryFn: async (): Promise<ProviderModel[]> => (await answerOf(api.GET('/api/providers/{id}/models', { params: { path: { id } } }))).models,
    staleTime: 60_000,
    retry: false,
  })
}
