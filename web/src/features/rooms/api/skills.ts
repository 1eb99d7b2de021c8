import { queryOptions } from '@tanstack/react-query'
import { answerOf, api } from '@/lib/api/client'
import type { components } from '@/lib/api/schema'

export type SkillParameter = components['schemas']['Parameter']

/** A skill as listed. */
export type Skill = Pick<components['schemas']['SkillSummary'], 'name' | 'display_name' | 'description' | 'parameters'>

/** What a message may begin with. The list is as the pages of skills read it. */
export const skillsQuery = queryOptions({
  queryKey: ['skills', 'list'],
  staleTime: 30_000,
  queryFn: () => answerOf(api.GET('/api/skills')),
})
