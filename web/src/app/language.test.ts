import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { dollars, duration, formatDate, percent } from '@/lib/format'
import { chooseLanguage, locale, preferredLanguage } from '@/lib/i18n'
import { german } from './german'
import { t } from './texts'

type Entry = string | ((...values: unknown[]) => string)
const tables = import.meta.glob<Record<string, Entry>>('/src/**/texts/en.ts', { eager: true, import: 'en' })

afterEach(() => chooseLanguage('en', null))

describe('the German tables', () => {
  it.each(Object.entries(tables))('have every string of %s', (_, en) => {
    const de = german.get(en) as Record<string, Entry> | undefined
    expect(Object.keys(de ?? {}).toSorted()).toEqual(Object.keys(en).toSorted())
    for (const [key, english] of Object.entries(en)) {
      const translated = de?.[key] ?? ''
      expect(typeof translated, key).toBe(typeof english)
      if (typeof english === 'string' || typeof translated === 'string') {
        expect(translated, key).not.toBe('')
        expect(partsOf(String(translated)), key).toEqual(partsOf(String(english)))
        continue
      }
      // Whatever is passed to a sentence has to be in it.
      const values = Array.from({ length: english.length }, (__, index) => `<${index}>`)
      for (const value of values) expect([key, english(...values).includes(value), translated(...values).includes(value)]).toEqual([key, true, true])
    }
  })
})

/** The places of a sentence that elements go to. */
function partsOf(text: string): string[] {
  return [...text.matchAll(/(?<![{$])\{(\w+)\}(?!\})/g)].map(([, name = '']) => name).toSorted()
}

describe('a language', () => {
  it('is what the person chose, or the first of the browser that there is', () => {
    expect(preferredLanguage('de')).toBe('de')
    expect(preferredLanguage(null)).toBe('en')
  })

  it('is used for strings, dates and numbers', () => {
    const date = new Date(2026, 10, 17, 14, 5)
    expect([t.settings, duration(3210), dollars(12.5), percent(0.94)]).toEqual(['Settings', '3.2 s', '$12.50', '94%'])
    chooseLanguage('de', german)
    expect([t.settings, duration(3210), dollars(12.5), percent(0.94)].map((text) => text.replaceAll('\u00a0', ' '))).toEqual(['Einstellungen', '3,2 s', '12,50 $', '94 %'])
    expect(formatDate(date, 'longDay')).toBe('Dienstag, 17. November')
    expect(locale()).toBe('de')
  })
})

describe('the check of strings', () => {
  const check = (source: string): string => {
    const folder = mkdtempSync(join(tmpdir(), 'texts-'))
    try {
      mkdirSync(join(folder, 'texts'))
      writeFileSync(join(folder, 'texts', 'en.ts'), "export const en = {\n  hello: 'Hello',\n}\n")
      writeFileSync(join(folder, 'page.tsx'), `import { t } from './texts'\n${source}`)
      execFileSync('node', [join(dirname(fileURLToPath(import.meta.url)), '../../scripts/check-texts.mjs'), folder], { stdio: 'pipe' })
      return ''
    } catch (error) {
      return String((error as { stderr: Buffer }).stderr)
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  it('lets tables pass, and finds what stands in none', () => {
    expect(check('export const Page = () => <p title={t.hello}>{t.hello} <code>ls</code></p>')).toBe('')
    expect(check('export const Page = () => <p title={t.hello}>Good day</p>')).toContain('“Good day” belongs in a table')
    expect(check('export const Page = () => <p aria-label="Day">{t.hello}</p>')).toContain('“Day” belongs in a table')
    expect(check("export const Page = (a: boolean) => <p>{a ? 'Yes' : t.hello}</p>")).toContain('“Yes” belongs in a table')
  })

  it('finds strings that are read too early, and those that nothing shows', () => {
    expect(check('export const word = t.hello')).toContain('is read while the module is loaded')
    expect(check('export const Page = () => <p>1</p>')).toContain('nothing shows hello')
  })
})
