import { t } from './texts'

export const templateIds = ['coder', 'reviewer', 'researcher', 'writer', 'analyst', 'critic'] as const
export type TemplateId = (typeof templateIds)[number]

/** A good beginning for an agent of one's own. Its instructions are loaded with the page that edits agents. */
export interface AgentTemplate {
  id: TemplateId
  name: string
  /** What it is for, in a line. */
  does: string
}

export function agentTemplates(): AgentTemplate[] {
  return [
    { id: 'coder', name: t.coderName, does: t.coderDoes },
    { id: 'reviewer', name: t.reviewerName, does: t.reviewerDoes },
    { id: 'researcher', name: t.researcherName, does: t.researcherDoes },
    { id: 'writer', name: t.writerName, does: t.writerDoes },
    { id: 'analyst', name: t.analystName, does: t.analystDoes },
    { id: 'critic', name: t.criticName, does: t.criticDoes },
  ]
}

export function isTemplateId(value: unknown): value is TemplateId {
  return templateIds.some((id) => id === value)
}
