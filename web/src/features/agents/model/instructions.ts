import type { TemplateId } from '@/lib/agent-templates'
import { t } from '../texts'

/** The instructions that an agent from a template begins with. */
export function instructionsOf(template: TemplateId): string {
  return {
    coder: t.coderPrompt,
    reviewer: t.reviewerPrompt,
    researcher: t.researcherPrompt,
    writer: t.writerPrompt,
    analyst: t.analystPrompt,
    critic: t.criticPrompt,
  }[template]
}
