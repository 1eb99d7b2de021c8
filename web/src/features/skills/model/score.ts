import type { Round } from '@/lib/api/types'

export interface ScorePoint {
  at: string
  experience: number
  score: number
  version: number
  /** Parts of the picture's width and height, from its lower left. */
  x: number
  y: number
}

/** The experience after each rating, oldest first. */
export function scorePoints(rounds: readonly Round[]): ScorePoint[] {
  const rated = rounds.filter((round) => round.kind === 'rating' && typeof round.experience === 'number').toReversed()
  return rated.map((round, index) => ({
    at: round.created_at,
    experience: round.experience ?? 0,
    score: round.score ?? 0,
    version: round.version,
    x: rated.length === 1 ? 0.5 : index / (rated.length - 1),
    y: (round.experience ?? 0) / 100,
  }))
}

/** Whether an answer contains a new body for the skill, in the format of a training agent. */
export function holdsProposal(text: string): boolean {
  return /^(`{3,}|~{3,})skill[ \t]*\r?$/m.test(text)
}
