import type { SkillSummary } from '@/lib/api/types'

export type { SkillParameter } from '@/lib/api/types'

/** A skill as listed. */
export type Skill = Pick<SkillSummary, 'name' | 'display_name' | 'description' | 'parameters'>
