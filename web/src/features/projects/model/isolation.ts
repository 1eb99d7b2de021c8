import type { ProjectIsolation } from '@/lib/api/types'
import { t } from '../texts'

type Level = ProjectIsolation['file']

/** What the sandbox does, in a sentence. */
export function tierSentence(tier: ProjectIsolation['tier']): string {
  return { native: t.tierNative, docker: t.tierDocker, landlock: t.tierLandlock, none: t.tierNone }[tier]
}

export function levelWord(level: Level): string {
  return { full: t.enforced, partial: t.partlyEnforced, none: t.notEnforced }[level]
}

/** Each thing that a sandbox can keep apart, and how well this one does. */
export function isolationLines(isolation: ProjectIsolation): { name: string; detail: string; level: Level }[] {
  return [
    { name: t.files, detail: t.filesOutsideTheProject, level: isolation.file },
    { name: t.network, detail: t.onlyAllowedHosts, level: isolation.network },
    { name: t.processes, detail: t.otherProcesses, level: isolation.process },
    { name: t.memory, detail: t.memoryIsLimited, level: isolation.memory },
    { name: t.processCount, detail: t.processCountIsLimited, level: isolation.pids },
    { name: t.disk, detail: t.diskIsLimited, level: isolation.disk },
  ]
}

/** For a badge; without a report no sandbox works. */
export function tierWord(tier: ProjectIsolation['tier'] | null): string {
  if (tier === null) return t.tierMissingWord
  return { native: t.tierNativeWord, docker: t.tierDockerWord, landlock: t.tierLandlockWord, none: t.tierNoneWord }[tier]
}
