import type { Finding } from '@/lib/api/types'
import { plural } from '@/lib/i18n'
import { t } from '../texts'

/** Fields of the form that show their own findings; all other findings are shown above them. */
const fields = [
  '/name',
  '/display_name',
  '/description',
  '/body',
  '/category',
  '/label',
  '/license',
  '/compatibility',
  '/metadata',
  '/parameters',
  '/mcp_servers',
  '/tools/allow',
  '/tools/ask',
  '/tools/deny',
]

export function findingsAt(findings: readonly Finding[], pointer: string): Finding[] {
  return findings.filter((finding) => isUnder(finding.pointer, pointer))
}

export function findingsElsewhere(findings: readonly Finding[]): Finding[] {
  return findings.filter((finding) => !fields.some((field) => isUnder(finding.pointer, field)))
}

/** Of the parameters as a whole, not of one of them. */
export function findingsOfList(findings: readonly Finding[], pointer: string, length: number): Finding[] {
  const ofItems = Array.from({ length }, (_, index) => `${pointer}/${index}`)
  return findingsAt(findings, pointer).filter((finding) => !ofItems.some((item) => isUnder(finding.pointer, item)))
}

export function hasErrors(findings: readonly Finding[]): boolean {
  return findings.some((finding) => finding.level === 'error')
}

/** “1 error, 2 warnings”, or nothing. */
export function countFindings(findings: readonly Finding[]): string {
  const errors = findings.filter((finding) => finding.level === 'error').length
  const warnings = findings.length - errors
  return [errors > 0 && plural(errors, t.oneError, t.errors(errors)), warnings > 0 && plural(warnings, t.oneWarning, t.warnings(warnings))].filter(Boolean).join(', ')
}

function isUnder(pointer: string, field: string): boolean {
  return pointer === field || pointer.startsWith(`${field}/`)
}
