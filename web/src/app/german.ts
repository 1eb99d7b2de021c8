import { de as appDe } from './texts/de'
import { en as appEn } from './texts/en'
import { de as componentsDe } from '@/components/texts/de'
import { en as componentsEn } from '@/components/texts/en'
import { de as libDe } from '@/lib/texts/de'
import { en as libEn } from '@/lib/texts/en'
import { de as agentsDe } from '@/features/agents/texts/de'
import { en as agentsEn } from '@/features/agents/texts/en'
import { de as mcpServersDe } from '@/features/mcp-servers/texts/de'
import { en as mcpServersEn } from '@/features/mcp-servers/texts/en'
import { de as projectsDe } from '@/features/projects/texts/de'
import { en as projectsEn } from '@/features/projects/texts/en'
import { de as providersDe } from '@/features/providers/texts/de'
import { en as providersEn } from '@/features/providers/texts/en'
import { de as roomsDe } from '@/features/rooms/texts/de'
import { en as roomsEn } from '@/features/rooms/texts/en'
import { de as runsDe } from '@/features/runs/texts/de'
import { en as runsEn } from '@/features/runs/texts/en'
import { de as searchDe } from '@/features/search/texts/de'
import { en as searchEn } from '@/features/search/texts/en'
import { de as settingsDe } from '@/features/settings/texts/de'
import { en as settingsEn } from '@/features/settings/texts/en'
import { de as signInDe } from '@/features/sign-in/texts/de'
import { en as signInEn } from '@/features/sign-in/texts/en'
import { de as skillsDe } from '@/features/skills/texts/de'
import { en as skillsEn } from '@/features/skills/texts/en'
import { de as usageDe } from '@/features/usage/texts/de'
import { en as usageEn } from '@/features/usage/texts/en'
import type { Translation } from '@/lib/i18n'

/** Loaded when somebody reads German. */
export const german: Translation = new Map<object, object>([
  [appEn, appDe],
  [componentsEn, componentsDe],
  [libEn, libDe],
  [agentsEn, agentsDe],
  [mcpServersEn, mcpServersDe],
  [projectsEn, projectsDe],
  [providersEn, providersDe],
  [roomsEn, roomsDe],
  [runsEn, runsDe],
  [searchEn, searchDe],
  [settingsEn, settingsDe],
  [signInEn, signInDe],
  [skillsEn, skillsDe],
  [usageEn, usageDe],
])
