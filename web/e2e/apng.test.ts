import { expect, it } from 'vitest'
import { animate } from './harness/apng'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

it('a browser plays an animation of screenshots', async () => {
  const page = await stage.page('/favicon.svg', { viewport: { width: 40, height: 30 } })
  await page.goto('about:blank')
  const picture = async (color: string): Promise<Buffer> => {
    await page.evaluate((fill) => (document.body.style.background = fill), color)
    return page.screenshot()
  }
  const [red, blue] = [await picture('red'), await picture('blue')]
  // Only a secure page may decode.
  await page.goto(`${stage.url}/favicon.svg`)
  const animation = animate([{ png: red, millis: 100 }, { png: red, millis: 100 }, { png: blue, millis: 300 }])
  const seen = await page.evaluate(async (data) => {
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0))
    const decoder = new ImageDecoder({ data: bytes, type: 'image/png' })
    await decoder.completed
    await decoder.tracks.ready
    const frames = []
    for (let frameIndex = 0; frameIndex < (decoder.tracks.selectedTrack?.frameCount ?? 0); frameIndex += 1) {
      const { image } = await decoder.decode({ frameIndex })
      frames.push([image.displayWidth, image.displayHeight, (image.duration ?? 0) / 1000])
    }
    return frames
  }, animation.toString('base64'))
  expect(seen).toEqual([[40, 30, 200], [40, 30, 300]])
  expect(() => animate([])).toThrow('needs a picture')
})
