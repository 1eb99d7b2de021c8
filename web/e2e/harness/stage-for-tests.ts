import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { Stage } from './stage'

/** One stage for all tests of a file. Fails at the end if a browser complained of anything but `expected`. */
export function stageForTests(expected?: RegExp): Stage {
  const stage = new Stage()
  beforeAll(() => stage.start())
  afterEach(() => stage.closeBrowsers())
  afterAll(async () => {
    await stage.close()
    expect(stage.complaints.filter((complaint) => !expected?.test(complaint))).toEqual([])
  })
  return stage
}
