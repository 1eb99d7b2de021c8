import { queryOptions } from '@tanstack/react-query'
import { ApiError, answerOf, api } from '@/lib/api/client'

export interface SkillParameter {
  name: string
  type: 'text' | 'number' | 'choice' | 'boolean' | 'file_path'
  description?: string | null
  required?: boolean
  default?: string | number | boolean | null
  choices?: string[]
}

/** What a list of skills says of one. */
export interface Skill {
  name: string
  display_name?: string | null
  description: string
  parameters: SkillParameter[]
}

type Listed = Parameters<typeof answerOf<{ skills: Skill[] }>>[0]

/** What a message may begin with. A server that knows no skills has none to offer. */
export const skillsQuery = queryOptions({
  queryKey: ['skills', 'names'],
  staleTime: 30_000,
  queryFn: async (): Promise<Skill[]> => {
    try {
      return (await answerOf((api.GET as (path: string) => Listed)('/api/skills'))).skills
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return []
      throw error
    }
  },
})
