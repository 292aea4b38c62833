// QR codes for sign-in links: byte mode, error correction level L, versions 1 to 9 (230 bytes).

/** Codewords of data, correction codewords of a block, blocks, and centers of alignment patterns, by version. */
const VERSIONS: [data: number, correction: number, blocks: number, centers: number[]][] = [
  [19, 7, 1, []], [34, 10, 1, [6, 18]], [55, 15, 1, [6, 22]], [80, 20, 1, [6, 26]], [108, 26, 1, [6, 30]],
  [136, 18, 2, [6, 34]], [156, 20, 2, [6, 22, 38]], [194, 24, 2, [6, 24, 42]], [232, 30, 2, [6, 26, 46]]
]

const MASKS: ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0, (_, y) => y % 2 === 0, x => x % 3 === 0, (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2 === 0, (x, y) => x * y % 2 + x * y % 3 === 0,
  (x, y) => (x * y % 2 + x * y % 3) % 2 === 0, (x, y) => ((x + y) % 2 + x * y % 3) % 2 === 0
]

type Matrix = (boolean | undefined)[][]

/** The dark modules of a text row by row, or nothing if it is too long. */
export function qrCode (text: string): boolean[][] | undefined {
  const bytes = new TextEncoder().encode(text)
  const version = VERSIONS.findIndex(([data]) => bytes.length + 2 <= data) + 1
  if (version === 0) return undefined
  const codewords = interleave(version, dataCodewords(bytes, VERSIONS[version - 1]![0]))
  const candidates = MASKS.map((_, mask) => draw(version, codewords, mask))
  return candidates.reduce((best, next) => penalty(next) < penalty(best) ? next : best)
}

function dataCodewords (bytes: Uint8Array, size: number): number[] {
  // Mode and length take 12 bits, so each byte is cut in two halves.
  const words = [0x40 | bytes.length >> 4]
  bytes.forEach((byte, index) => words.push((index === 0 ? bytes.length : bytes[index - 1]!) << 4 & 0xf0 | byte >> 4))
  words.push((bytes.at(-1) ?? bytes.length) << 4 & 0xf0)
  for (let pad = 0; words.length < size; pad++) words.push(pad % 2 ? 0x11 : 0xec)
  return words
}

function multiply (a: number, b: number): number {
  let product = 0
  for (let bit = 7; bit >= 0; bit--) product = product << 1 ^ (product >> 7) * 0x11d ^ (b >> bit & 1) * a
  return product
}

/** Reed-Solomon remainder of the data. */
function correctionCodewords (data: number[], count: number): number[] {
  const divisor = new Array<number>(count).fill(0)
  divisor[count - 1] = 1
  let root = 1
  for (let degree = 0; degree < count; degree++) {
    for (let index = 0; index < count; index++) divisor[index] = multiply(divisor[index]!, root) ^ (divisor[index + 1] ?? 0)
    root = multiply(root, 2)
  }
  const rest = new Array<number>(count).fill(0)
  for (const word of data) {
    const factor = word ^ rest.shift()!
    rest.push(0)
    divisor.forEach((coefficient, index) => { rest[index]! ^= multiply(coefficient, factor) })
  }
  return rest
}

function interleave (version: number, data: number[]): number[] {
  const [, correction, count] = VERSIONS[version - 1]!
  const length = data.length / count
  const blocks = Array.from({ length: count }, (_, index) => data.slice(index * length, (index + 1) * length))
  const checks = blocks.map(block => correctionCodewords(block, correction))
  const columns = (rows: number[][]) => rows[0]!.flatMap((_, index) => rows.map(row => row[index]!))
  return [...columns(blocks), ...columns(checks)]
}

function draw (version: number, codewords: number[], mask: number): boolean[][] {
  const size = version * 4 + 17
  const matrix: Matrix = Array.from({ length: size }, () => new Array<boolean | undefined>(size).fill(undefined))
  const set = (x: number, y: number, dark: boolean) => { if (matrix[y] && x >= 0 && x < size) matrix[y]![x] = dark }
  for (let index = 0; index < size; index++) {
    set(index, 6, index % 2 === 0)
    set(6, index, index % 2 === 0)
  }
  for (const [centerX, centerY] of [[3, 3], [size - 4, 3], [3, size - 4]] as const) {
    for (let y = -4; y <= 4; y++) for (let x = -4; x <= 4; x++) set(centerX + x, centerY + y, ![2, 4].includes(Math.max(Math.abs(x), Math.abs(y))))
  }
  const centers = VERSIONS[version - 1]![3]
  for (const centerX of centers) for (const centerY of centers) {
    if ((centerX === 6 || centerY === 6) && (centerX === centerY || centerX === size - 7 || centerY === size - 7)) continue
    for (let y = -2; y <= 2; y++) for (let x = -2; x <= 2; x++) set(centerX + x, centerY + y, Math.max(Math.abs(x), Math.abs(y)) !== 1)
  }
  drawFormat(set, size, mask)
  if (version >= 7) drawVersion(set, size, version)
  drawCodewords(matrix, codewords, mask)
  return matrix as boolean[][]
}

function drawFormat (set: (x: number, y: number, dark: boolean) => void, size: number, mask: number) {
  // Level L is 01.
  const data = 1 << 3 | mask
  let rest = data
  for (let step = 0; step < 10; step++) rest = rest << 1 ^ (rest >> 9) * 0x537
  const bits = (data << 10 | rest) ^ 0x5412
  const bit = (index: number) => (bits >> index & 1) === 1
  for (let index = 0; index <= 5; index++) set(8, index, bit(index))
  set(8, 7, bit(6))
  set(8, 8, bit(7))
  set(7, 8, bit(8))
  for (let index = 9; index < 15; index++) set(14 - index, 8, bit(index))
  for (let index = 0; index < 8; index++) set(size - 1 - index, 8, bit(index))
  for (let index = 8; index < 15; index++) set(8, size - 15 + index, bit(index))
  set(8, size - 8, true)
}

function drawVersion (set: (x: number, y: number, dark: boolean) => void, size: number, version: number) {
  let rest = version
  for (let step = 0; step < 12; step++) rest = rest << 1 ^ (rest >> 11) * 0x1f25
  const bits = version << 12 | rest
  for (let index = 0; index < 18; index++) {
    const dark = (bits >> index & 1) === 1
    const a = size - 11 + index % 3
    const b = Math.floor(index / 3)
    set(a, b, dark)
    set(b, a, dark)
  }
}

/** Fills the free modules in zigzag from the lower right. */
function drawCodewords (matrix: Matrix, codewords: number[], mask: number) {
  const size = matrix.length
  let index = 0
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5
    for (let step = 0; step < size; step++) {
      const upward = (right + 1 & 2) === 0
      const y = upward ? size - 1 - step : step
      for (const x of [right, right - 1]) {
        if (matrix[y]![x] !== undefined) continue
        const dark = index < codewords.length * 8 && (codewords[index >> 3]! >> 7 - (index & 7) & 1) === 1
        index++
        matrix[y]![x] = dark !== MASKS[mask]!(x, y)
      }
    }
  }
}

/** How hard a code is to read: long runs, squares of one color, and an uneven share of dark modules. */
function penalty (matrix: boolean[][]): number {
  const size = matrix.length
  let sum = 0
  let darkCount = 0
  for (let a = 0; a < size; a++) {
    for (const at of [(b: number) => matrix[a]![b], (b: number) => matrix[b]![a]]) {
      let run = 1
      for (let b = 1; b <= size; b++) {
        if (b < size && at(b) === at(b - 1)) run++
        else { if (run >= 5) sum += run - 2; run = 1 }
      }
    }
    for (let b = 0; b < size; b++) {
      const dark = matrix[a]![b]
      if (dark) darkCount++
      if (a && b && matrix[a - 1]![b] === dark && matrix[a]![b - 1] === dark && matrix[a - 1]![b - 1] === dark) sum += 3
    }
  }
  return sum + Math.floor(Math.abs(darkCount * 20 - size * size * 10) / (size * size)) * 10
}
