import { expect, it } from 'vitest'
import { RoomView } from './harness/room'
import { stageForTests } from './harness/stage-for-tests'

const stage = stageForTests()

it('can be installed: manifest, icons and worker are there', async () => {
  const page = await stage.page('/', { serviceWorkers: 'allow' })
  const manifest = await page.evaluate(async () => {
    const address = document.querySelector<HTMLLinkElement>('link[rel=manifest]')?.href ?? ''
    const found = (await (await fetch(address)).json()) as { start_url: string; display: string; icons: { src: string }[] }
    const sizes = await Promise.all(found.icons.map(async ({ src }) => (await fetch(src)).status))
    return { ...found, sizes }
  })
  expect([manifest.start_url, manifest.display]).toEqual(['/', 'standalone'])
  expect(manifest.sizes.every((status) => status === 200)).toBe(true)
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => true))
})

it('opens without a network, and keeps nothing of the API', async () => {
  const page = await stage.page('/', { serviceWorkers: 'allow' })
  await new RoomView(page).field.waitFor()
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => true))
  // Once more, so that the worker sees the files of the page.
  await page.reload()
  await new RoomView(page).field.waitFor()
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null)
  await page.reload()
  await new RoomView(page).field.waitFor()
  const kept = await page.evaluate(async () => {
    const names = await caches.keys()
    const lists = await Promise.all(names.map(async (name) => (await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname)))
    return lists.flat()
  })
  expect(kept).toContain('/')
  expect(kept.filter((path) => path !== '/' && !path.startsWith('/assets/'))).toEqual([])

  await page.context().setOffline(true)
  await page.reload()
  await page.getByText('Greenroom', { exact: true }).first().waitFor()
  expect(await page.title()).toContain('Greenroom')
  await page.context().setOffline(false)
})
