// Joins screenshots into one animated PNG, which every browser and GitHub show without a player.

/** A picture and for how long it is shown. */
export interface Frame {
  png: Buffer
  millis: number
}

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

interface Chunk {
  type: string
  data: Buffer
}

/** All pictures must have the same size; equal ones that follow each other become one. */
export function animate(frames: readonly Frame[]): Buffer {
  const pictures = merged(frames).map(({ png, millis }) => ({ chunks: chunksOf(png), millis }))
  const header = pictures[0]?.chunks.find(({ type }) => type === 'IHDR')?.data
  if (!header) throw new Error('an animation needs a picture')
  const parts = [signature, chunk('IHDR', header), chunk('acTL', numbers(pictures.length, 0))]
  let sequence = 0
  for (const [index, { chunks, millis }] of pictures.entries()) {
    if (!chunks.find(({ type }) => type === 'IHDR')?.data.equals(header)) throw new Error('the pictures differ in size or kind')
    const size = header.subarray(0, 8)
    // At the top left, for so many thousandths of a second, without blending.
    const delay = Buffer.alloc(6)
    delay.writeUInt16BE(Math.min(millis, 65_535), 0)
    delay.writeUInt16BE(1000, 2)
    parts.push(chunk('fcTL', Buffer.concat([numbers(sequence++), size, numbers(0, 0), delay])))
    const data = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map((part) => part.data))
    parts.push(index === 0 ? chunk('IDAT', data) : chunk('fdAT', Buffer.concat([numbers(sequence++), data])))
  }
  return Buffer.concat([...parts, chunk('IEND', Buffer.alloc(0))])
}

function merged(frames: readonly Frame[]): Frame[] {
  const kept: Frame[] = []
  for (const { png, millis } of frames) {
    const last = kept.at(-1)
    if (last?.png.equals(png)) last.millis += millis
    else kept.push({ png, millis })
  }
  return kept
}

function chunksOf(png: Buffer): Chunk[] {
  const chunks: Chunk[] = []
  for (let at = signature.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) })
    at += length + 12
  }
  return chunks
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  return Buffer.concat([numbers(data.length), named, numbers(checksum(named))])
}

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, index) => bytes.writeUInt32BE(value, index * 4))
  return bytes
}

/** CRC-32, as PNG has it. */
function checksum(bytes: Buffer): number {
  let sum = 0xffffffff
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0)
  }
  return (sum ^ 0xffffffff) >>> 0
}
