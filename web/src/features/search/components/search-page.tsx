import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Search } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { Button } from '@/components/ui/button'
import { EmptyState } from '@/components/ui/empty-state'
import { ProblemNote } from '@/components/ui/problem-note'
import { Segmented } from '@/components/ui/segmented'
import { searchQuery } from '../api/search'
import type { Place, SearchFilter } from '../model/search-filter'
import { useLaterText } from '../model/use-later-text'
import { HitRow } from './hit-row'
import { t } from '../texts'
import styles from './search-page.module.css'

const choices = [
  { value: 'all', get label() { return t.everything } },
  { value: 'messages', get label() { return t.messages } },
  { value: 'rooms', get label() { return t.rooms } },
  { value: 'agents', get label() { return t.agents } },
  { value: 'files', get label() { return t.files } },
] as const

/** Finds messages by their texts, and rooms, agents and files by their names. */
export function SearchPage({ filter }: { filter: SearchFilter }): ReactNode {
  const navigate = useNavigate()
  const [text, setText] = useState(filter.q ?? '')
  const words = useLaterText(text.trim())
  const place = filter.in
  useEffect(() => {
    if (words !== (filter.q ?? '')) void navigate({ to: '/search', search: { ...filter, q: words || undefined }, replace: true })
    // Only what is typed changes the address; a link to another search fills the field.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [words])
  const { data, error, refetch, isFetching, isFetchingNextPage, hasNextPage, fetchNextPage } = useInfiniteQuery({ ...searchQuery(words, place), enabled: words !== '' })
  const hits = words === '' ? [] : (data?.pages.flatMap((page) => page.hits) ?? [])
  return (
    <PageBody title={t.search} width="narrow">
      <div className={styles.field}>
        <Search size={17} aria-hidden />
        {/* oxlint-disable-next-line jsx-a11y/no-autofocus -- the page has no other purpose */}
        <input type="search" autoFocus dir="auto" aria-label={t.searchEverything} placeholder={t.searchEverything} maxLength={200} value={text} onChange={(event) => setText(event.target.value)} />
      </div>
      <div className={styles.where}>
        <Segmented label={t.whereToLook} choices={choices} value={place ?? 'all'} onChange={(value) => void navigate({ to: '/search', search: { ...filter, in: value === 'all' ? undefined : (value as Place) }, replace: true })} />
      </div>
      {error && <ProblemNote title={t.couldNotSearch} error={error} onRetry={() => void refetch()} />}
      {words === '' && <EmptyState title={t.typeWords} />}
      {words !== '' && !isFetching && !error && hits.length === 0 && (
        <div role="status">
          <EmptyState title={t.noResults} />
        </div>
      )}
      {hits.length > 0 && (
        <ul className={styles.hits} aria-label={t.results} aria-busy={isFetching}>
          {hits.map((hit) => (
            <HitRow key={`${hit.kind} ${hit.id}`} hit={hit} />
          ))}
        </ul>
      )}
      {hasNextPage && hits.length > 0 && (
        <Button isBusy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {t.loadMore}
        </Button>
      )}
    </PageBody>
  )
}
