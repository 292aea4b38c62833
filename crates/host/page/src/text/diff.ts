// Line diffs: computed from two texts or read from the engine's hunks, with the changed words of a line marked.

export type Line =
  | { kind: 'same' | 'added' | 'removed', old: number, new: number, text: string, marks: [number, number][] }
  | { kind: 'skip', count: number }

/** Above this number of steps the rest of two texts counts as changed. */
const MAX_STEPS = 2000

/** Lines around a change that are shown. */
const CONTEXT = 3

/** Splits a text into lines; a final line break does not begin another line. */
export function splitLines (text: string): string[] {
  if (text === '') return []
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

/** The longest common subsequence by Myers' algorithm: pairs of equal indexes. */
export function matchLines (a: string[], b: string[]): [number, number][] {
  let begin = 0
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin++
  let end = 0
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const pairs: [number, number][] = []
  for (let index = 0; index < begin; index++) pairs.push([index, index])
  for (const [x, y] of changedPart(a.slice(begin, a.length - end), b.slice(begin, b.length - end))) pairs.push([x + begin, y + begin])
  for (let index = end; index > 0; index--) pairs.push([a.length - index, b.length - index])
  return pairs
}

/** Texts with too many changes for Myers' algorithm are cut at lines that occur once in both. */
function changedPart (a: string[], b: string[]): [number, number][] {
  const pairs = middle(a, b)
  if (pairs) return pairs
  const anchors = uniqueLines(a, b)
  const result: [number, number][] = []
  let x = 0
  let y = 0
  for (const [nextX, nextY] of [...anchors, [a.length, b.length] as [number, number]]) {
    for (const [gapX, gapY] of middle(a.slice(x, nextX), b.slice(y, nextY)) ?? []) result.push([x + gapX, y + gapY])
    if (nextX < a.length) result.push([nextX, nextY])
    x = nextX + 1
    y = nextY + 1
  }
  return result
}

/** The longest ascending list of lines that occur once in each text (patience diff). */
function uniqueLines (a: string[], b: string[]): [number, number][] {
  const places = (lines: string[]) => {
    const found = new Map<string, number>()
    lines.forEach((line, index) => found.set(line, found.has(line) ? -1 : index))
    return found
  }
  const inB = places(b)
  const candidates: [number, number][] = []
  for (const [line, x] of places(a)) {
    const y = inB.get(line) ?? -1
    if (x >= 0 && y >= 0) candidates.push([x, y])
  }
  const tops: number[] = []
  const previous: number[] = []
  candidates.forEach(([, y], index) => {
    let low = 0
    let high = tops.length
    while (low < high) {
      const half = (low + high) >> 1
      if (candidates[tops[half]!]![1] < y) low = half + 1
      else high = half
    }
    previous[index] = low > 0 ? tops[low - 1]! : -1
    tops[low] = index
  })
  const chosen: [number, number][] = []
  for (let index = tops.at(-1) ?? -1; index >= 0; index = previous[index]!) chosen.push(candidates[index]!)
  return chosen.reverse()
}

/** The pairs of equal lines, or nothing if the texts differ in too many. */
function middle (a: string[], b: string[]): [number, number][] | undefined {
  const limit = Math.min(a.length + b.length, MAX_STEPS)
  if (!a.length || !b.length) return []
  const width = 2 * limit + 3
  const middleIndex = limit + 1
  const furthest = new Int32Array(width)
  const history: Int32Array[] = []
  for (let step = 0; step <= limit; step++) {
    history.push(furthest.slice(middleIndex - step - 1, middleIndex + step + 2))
    for (let k = -step; k <= step; k += 2) {
      const down = k === -step || (k !== step && furthest[middleIndex + k - 1]! < furthest[middleIndex + k + 1]!)
      let x = down ? furthest[middleIndex + k + 1]! : furthest[middleIndex + k - 1]! + 1
      let y = x - k
      while (x < a.length && y < b.length && a[x] === b[y]) { x++; y++ }
      furthest[middleIndex + k] = x
      if (x >= a.length && y >= b.length) return walkBack(history, a.length, b.length)
    }
  }
  return undefined
}

function walkBack (history: Int32Array[], endX: number, endY: number): [number, number][] {
  const pairs: [number, number][] = []
  let x = endX
  let y = endY
  for (let step = history.length - 1; step >= 0; step--) {
    const row = history[step]!
    const at = (k: number) => row[k + step + 1] ?? 0
    const k = x - y
    const down = k === -step || (k !== step && at(k - 1) < at(k + 1))
    const previousK = down ? k + 1 : k - 1
    const previousX = step === 0 ? 0 : at(previousK)
    const previousY = step === 0 ? 0 : previousX - previousK
    while (x > previousX && y > previousY && x > 0 && y > 0) pairs.push([--x, --y])
    x = previousX
    y = previousY
  }
  return pairs.reverse()
}

/** The diff of two texts with line numbers from `firstLine` on; equal parts far from a change are left out. */
export function diffTexts (before: string, after: string, firstLine = 1): Line[] {
  const a = splitLines(before)
  const b = splitLines(after)
  const lines: Line[] = []
  let x = 0
  let y = 0
  const flushTo = (toX: number, toY: number) => {
    while (x < toX) lines.push({ kind: 'removed', old: firstLine + x, new: 0, text: a[x++]!, marks: [] })
    while (y < toY) lines.push({ kind: 'added', old: 0, new: firstLine + y, text: b[y++]!, marks: [] })
  }
  for (const [pairX, pairY] of matchLines(a, b)) {
    flushTo(pairX, pairY)
    lines.push({ kind: 'same', old: firstLine + x++, new: firstLine + y++, text: a[pairX]!, marks: [] })
  }
  flushTo(a.length, b.length)
  return skipEqual(markWords(lines))
}

/** The lines of the engine's hunks. */
export function hunkLines (hunks: { oldStart: number, newStart: number, lines: string[] }[]): Line[] {
  const lines: Line[] = []
  let oldNext = 1
  for (const hunk of hunks) {
    const skipped = hunk.oldStart - oldNext
    if (skipped > 0) lines.push({ kind: 'skip', count: skipped })
    let oldLine = hunk.oldStart
    let newLine = hunk.newStart
    for (const line of hunk.lines) {
      const text = line.slice(1)
      if (line.startsWith('+')) lines.push({ kind: 'added', old: 0, new: newLine++, text, marks: [] })
      else if (line.startsWith('-')) lines.push({ kind: 'removed', old: oldLine++, new: 0, text, marks: [] })
      else if (!line.startsWith('\\')) lines.push({ kind: 'same', old: oldLine++, new: newLine++, text, marks: [] })
    }
    oldNext = oldLine
  }
  return markWords(lines)
}

function skipEqual (lines: Line[]): Line[] {
  const near = new Uint8Array(lines.length)
  lines.forEach((line, index) => {
    if (line.kind !== 'added' && line.kind !== 'removed') return
    for (let at = Math.max(0, index - CONTEXT); at <= Math.min(lines.length - 1, index + CONTEXT); at++) near[at] = 1
  })
  const shown: Line[] = []
  let skipped = 0
  lines.forEach((line, index) => {
    if (near[index]) {
      if (skipped) shown.push({ kind: 'skip', count: skipped })
      skipped = 0
      shown.push(line)
    } else {
      skipped++
    }
  })
  if (skipped && shown.length) shown.push({ kind: 'skip', count: skipped })
  return shown
}

/** Marks the words that differ where as many lines were removed as added. */
function markWords (lines: Line[]): Line[] {
  let index = 0
  while (index < lines.length) {
    let removed = index
    while (lines[removed]?.kind === 'removed') removed++
    let added = removed
    while (lines[added]?.kind === 'added') added++
    const pairs = removed - index
    if (pairs > 0 && pairs === added - removed && pairs <= 50) {
      for (let pair = 0; pair < pairs; pair++) markPair(lines, index + pair, removed + pair)
    }
    index = Math.max(added, index + 1)
  }
  return lines
}

const WORD = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu

function markPair (lines: Line[], oldIndex: number, newIndex: number) {
  const before = lines[oldIndex]!
  const after = lines[newIndex]!
  if (before.kind !== 'removed' || after.kind !== 'added' || before.text.length + after.text.length > 1000) return
  const a = before.text.match(WORD) ?? []
  const b = after.text.match(WORD) ?? []
  const pairs = matchLines(a, b)
  const equal = pairs.reduce((sum, [x]) => sum + a[x]!.trim().length, 0)
  // Lines without much in common read better unmarked.
  if (equal * 3 < Math.min(before.text.trim().length, after.text.trim().length)) return
  lines[oldIndex] = { ...before, marks: unmatched(a, new Set(pairs.map(([x]) => x))) }
  lines[newIndex] = { ...after, marks: unmatched(b, new Set(pairs.map(([, y]) => y))) }
}

function unmatched (words: string[], matched: Set<number>): [number, number][] {
  const marks: [number, number][] = []
  let at = 0
  words.forEach((word, index) => {
    const last = marks.at(-1)
    if (!matched.has(index)) {
      if (last && last[1] === at) last[1] = at + word.length
      else marks.push([at, at + word.length])
    }
    at += word.length
  })
  return marks
}

export function countChanges (lines: Line[]): { added: number, removed: number } {
  let added = 0
  let removed = 0
  for (const line of lines) {
    if (line.kind === 'added') added++
    if (line.kind === 'removed') removed++
  }
  return { added, removed }
}
